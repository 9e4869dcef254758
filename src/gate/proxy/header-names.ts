import { foldHeaderName } from '../identity/identity-names.ts';
import type { Credentials } from './forwarding.ts';

/** What becomes of a header line of a request. */
export type Fate = 'pass' | 'drop' | 'expect' | 'forwardedFor' | 'via';

/** What becomes of a header line, by its name. */
export type FindFate = (name: string) => Fate;

const read: ReadonlyMap<string, Fate> = new Map<string, Fate>([
  ['expect', 'expect'],
  ['x-forwarded-for', 'forwardedFor'],
  ['via', 'via'],
]);

/** What a request cannot do without, and what says how long it is: made anew, no identity, and not gone by Connection. */
const framing: readonly string[] = ['host', 'content-length', 'transfer-encoding'];

/** For one connection only (RFC 9110 §7.6.1), or for a proxy. */
const hopByHop = [
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'upgrade', 'http2-settings'],
  ...['proxy-authorization', 'proxy-authenticate', 'proxy-authentication-info'],
];
/** Some frameworks take the path or the method from these: not the ones that were judged. */
const overrides = [
  ...['x-original-url', 'x-rewrite-url', 'x-override-url'],
  ...['x-http-method', 'x-http-method-override', 'x-method-override'],
];
/** What only a gate may say, and what CGI would read as the setting of an HTTP proxy. */
const claims = ['forwarded', 'x-real-ip', 'proxy'];
const secrets = ['authorization', 'dpop'];

/** Names that a client must not set in another spelling: CGI and its like read every sign but letters and digits as one. */
const guarded: ReadonlySet<string> = new Set([
  ...framing,
  ...read.keys(),
  ...hopByHop,
  ...overrides,
  ...claims,
  ...secrets,
]);
const guardedPrefix = 'x-forwarded-';

const noIdentity: ReadonlySet<string> = new Set([...framing, ...hopByHop, 'expect', 'trailer', 'via']);
const token = /^[\w!#$%&'*+.^`|~-]+$/;

/** Names that are remembered for each list: few differ, unless somebody makes them up. */
const maxRemembered = 512;

const remembered: Readonly<Record<Credentials, WeakMap<readonly string[], FindFate>>> = {
  forward: new WeakMap(),
  remove: new WeakMap(),
};

/** What becomes of each header; `names` are ours. Throws `TypeError` for a name that cannot carry an identity. */
export function findFates(names: readonly string[], credentials: Credentials): FindFate {
  const known = remembered[credentials].get(names);
  if (known !== undefined) return known;
  const find = createFindFate(names, credentials);
  remembered[credentials].set(names, find);
  return find;
}

function createFindFate(names: readonly string[], credentials: Credentials): FindFate {
  const ours = new Set(names.map(foldHeaderName));
  for (const name of names) {
    if (!token.test(name) || noIdentity.has(foldHeaderName(name))) {
      throw new TypeError(
        'An identity header has a name that a header cannot have, or that says how a request is sent.',
      );
    }
  }
  const decide = (name: string): Fate => {
    const lower = name.toLowerCase();
    const spelled = foldHeaderName(name);
    if (ours.has(spelled)) return 'drop';
    if (credentials === 'forward' && secrets.includes(lower)) return 'pass';
    const fate = read.get(lower);
    if (fate !== undefined) return fate;
    return guarded.has(spelled) || spelled.startsWith(guardedPrefix) ? 'drop' : 'pass';
  };
  const fates = new Map<string, Fate>();
  return (name) => {
    const known = fates.get(name);
    if (known !== undefined) return known;
    const fate = decide(name);
    if (fates.size < maxRemembered) fates.set(name, fate);
    return fate;
  };
}

/** The names that Connection lists, in lower case; `undefined` for the usual ones. */
export function removedByConnection(rawHeaders: readonly string[]): ReadonlySet<string> | undefined {
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

/** A header that says where a request goes or ends, or takes others away. */
export type FramingPart = 'Host' | 'Content-Length' | 'Transfer-Encoding' | 'Connection';

const framingParts: ReadonlyMap<number, FramingPart> = new Map(
  (['Host', 'Content-Length', 'Transfer-Encoding', 'Connection'] as const).map((part) => [part.length, part]),
);

/** By the length of the name first: this is asked of every header. */
export function findFramingPart(name: string): FramingPart | undefined {
  const part = framingParts.get(name.length);
  return part !== undefined && (name === part || name.toLowerCase() === part.toLowerCase()) ? part : undefined;
}

/** Whether a Connection header names one that every server needs: the next reader might leave it out. */
export function namesFraming(value: string): boolean {
  return value
    .toLowerCase()
    .split(',')
    .some((option) => framing.includes(option.trim()));
}

/** Whether a field may stand in the trailers of a message: none that frames, routes, authenticates or controls (RFC 9110 §6.5.1). */
export function isTrailer(name: string): boolean {
  const spelled = foldHeaderName(name);
  return (
    !guarded.has(spelled) && !noIdentity.has(spelled) && !spelled.startsWith(guardedPrefix) && !untrailed.test(spelled)
  );
}

const untrailed =
  /^(?:content-|if-|accept|cookie|set-cookie|www-authenticate|cache-control|pragma|range|max-forwards|age|date|expires|location|retry-after|vary|warning|trailer$)/;
