import { foldHeaderName, overrideHeaders } from '../identity/identity-names.ts';
import type { CredentialForwarding } from './forwarding.ts';

export type HeaderAction = 'pass' | 'drop' | 'expect' | 'forwardedFor' | 'via';

export type FindHeaderAction = (name: string) => HeaderAction;

const rewritten: ReadonlyMap<string, HeaderAction> = new Map<string, HeaderAction>([
  ['expect', 'expect'],
  ['x-forwarded-for', 'forwardedFor'],
  ['via', 'via'],
]);

/** Headers of target and length, which the gate sets itself and Connection must not name. */
const framing: readonly string[] = ['host', 'content-length', 'transfer-encoding'];

/** For one connection only (RFC 9110 §7.6.1), or for a proxy. */
const hopByHop = [
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'upgrade', 'http2-settings'],
  ...['proxy-authorization', 'proxy-authenticate', 'proxy-authentication-info'],
];
/** Headers that only a proxy may set; CGI reads `Proxy` as the setting of an HTTP proxy. */
const proxyFields = ['forwarded', 'x-real-ip', 'x-request-id', 'proxy'];
const secrets = ['authorization', 'dpop'];

/** Names that a client must not set in any spelling: CGI reads every character except letters and digits as `_`. */
const guarded: ReadonlySet<string> = new Set([
  ...framing,
  ...rewritten.keys(),
  ...hopByHop,
  ...overrideHeaders,
  ...proxyFields,
  ...secrets,
]);
const guardedPrefix = 'x-forwarded-';

const noIdentity: ReadonlySet<string> = new Set([...framing, ...hopByHop, 'expect', 'trailer', 'via']);
const token = /^[\w!#$%&'*+.^`|~-]+$/;

const maxCachedNames = 512;

const byIdentity: Readonly<Record<CredentialForwarding, WeakMap<readonly string[], FindHeaderAction>>> = {
  forward: new WeakMap(),
  remove: new WeakMap(),
};

/** Finds the actions for headers; `names` are the identity headers. Throws `TypeError` for a name that cannot carry an identity. */
export function findHeaderActions(names: readonly string[], credentials: CredentialForwarding): FindHeaderAction {
  const known = byIdentity[credentials].get(names);
  if (known !== undefined) return known;
  const find = createFindHeaderAction(names, credentials);
  byIdentity[credentials].set(names, find);
  return find;
}

function createFindHeaderAction(names: readonly string[], credentials: CredentialForwarding): FindHeaderAction {
  const ours = new Set(names.map(foldHeaderName));
  for (const name of names) {
    if (!token.test(name) || noIdentity.has(foldHeaderName(name))) {
      throw new TypeError('identity: use header names that are valid and not about framing or the connection');
    }
  }
  const decide = (name: string): HeaderAction => {
    const lower = name.toLowerCase();
    const spelled = foldHeaderName(name);
    if (ours.has(spelled)) return 'drop';
    if (credentials === 'forward' && secrets.includes(lower)) return 'pass';
    const action = rewritten.get(lower);
    if (action !== undefined) return action;
    return guarded.has(spelled) || spelled.startsWith(guardedPrefix) ? 'drop' : 'pass';
  };
  const actions = new Map<string, HeaderAction>();
  return (name) => {
    const known = actions.get(name);
    if (known !== undefined) return known;
    const action = decide(name);
    if (actions.size < maxCachedNames) actions.set(name, action);
    return action;
  };
}

/** Reads the names that Connection lists, in lower case; `undefined` for `keep-alive` and `close`. */
export function readConnectionOptions(rawHeaders: readonly string[]): ReadonlySet<string> | undefined {
  let names: Set<string> | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.length !== 10 || name.toLowerCase() !== 'connection') continue;
    const value = (rawHeaders[i + 1] ?? '').toLowerCase();
    if (value === 'keep-alive' || value === 'close') continue;
    names ??= new Set();
    for (const option of value.split(',')) names.add(option.trim());
  }
  return names;
}

export type FramingPart = 'Host' | 'Content-Length' | 'Transfer-Encoding' | 'Connection';

const framingParts: ReadonlyMap<number, FramingPart> = new Map(
  (['Host', 'Content-Length', 'Transfer-Encoding', 'Connection'] as const).map((part) => [part.length, part]),
);

/** Finds a framing header. Compares lengths first, because this runs for every header. */
export function findFramingPart(name: string): FramingPart | undefined {
  const part = framingParts.get(name.length);
  return part !== undefined && (name === part || name.toLowerCase() === part.toLowerCase()) ? part : undefined;
}

/** Reports whether a Connection header names a framing header, which the next reader might then remove. */
export function namesFraming(value: string): boolean {
  return value
    .toLowerCase()
    .split(',')
    .some((option) => framing.includes(option.trim()));
}

/** Reports whether a field is allowed in trailers: not for framing, routing, authentication or control (RFC 9110 §6.5.1). */
export function isTrailer(name: string): boolean {
  const spelled = foldHeaderName(name);
  return (
    !guarded.has(spelled) && !noIdentity.has(spelled) && !spelled.startsWith(guardedPrefix) && !untrailed.test(spelled)
  );
}

const untrailed =
  /^(?:content-|if-|accept|cookie|set-cookie|www-authenticate|cache-control|pragma|range|max-forwards|age|date|expires|location|retry-after|vary|warning|trailer$)/;
