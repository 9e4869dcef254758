import type { HeaderList } from '../../server/http/exchange.ts';
import { foldHeaderName, overrideHeaders } from '../identity/identity-headers.ts';
import type { Rule } from '../match/rules.ts';

type HeaderAction = 'pass' | 'drop' | 'expect' | 'forwardedFor' | 'via';
type FindHeaderAction = (name: string) => HeaderAction;

const rewritten = new Map<string, HeaderAction>([
  ['expect', 'expect'],
  ['x-forwarded-for', 'forwardedFor'],
  ['via', 'via'],
]);

/** Headers of target and length, which the gate sets itself and Connection must not name. */
export const framingHeaders: readonly string[] = ['host', 'content-length', 'transfer-encoding'];

/** For one connection only (RFC 9110 §7.6.1), or for a proxy. */
const hopByHop = [
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'upgrade'],
  ...['proxy-authenticate', 'proxy-authentication-info'],
];
const requestHopByHop = [...hopByHop, 'http2-settings', 'proxy-authorization'];
/** Headers that only a proxy may set; CGI reads `Proxy` as the setting of an HTTP proxy. */
const proxyFields = ['forwarded', 'x-real-ip', 'x-request-id', 'proxy'];
const secrets = ['authorization', 'dpop'];

/** Names that a client must not set in any spelling: CGI reads every character except letters and digits as `_`. */
const guarded: ReadonlySet<string> = new Set([
  ...framingHeaders,
  ...rewritten.keys(),
  ...requestHopByHop,
  ...overrideHeaders,
  ...proxyFields,
  ...secrets,
]);
const guardedPrefix = 'x-forwarded-';

const maxCachedNames = 512;

const byIdentity = new WeakMap<readonly string[], Readonly<Record<Rule['credentials'], FindHeaderAction>>>();

/** Finds the actions for headers; `names` are the identity headers. */
export function findHeaderActions(names: readonly string[], credentials: Rule['credentials']): FindHeaderAction {
  const known = byIdentity.get(names);
  if (known !== undefined) return known[credentials];
  const both = { forward: createFindAction(names, 'forward'), remove: createFindAction(names, 'remove') };
  byIdentity.set(names, both);
  return both[credentials];
}

function createFindAction(names: readonly string[], credentials: Rule['credentials']): FindHeaderAction {
  const ours = new Set(names.map(foldHeaderName));
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

/** Adds the names that a Connection header lists, in lower case. `keep-alive` and `close` name no header. */
export function addConnectionOptions(
  names: ReadonlySet<string> | undefined,
  value: string,
): ReadonlySet<string> | undefined {
  const lower = value.toLowerCase();
  if (lower === 'keep-alive' || lower === 'close') return names;
  return new Set([...(names ?? []), ...lower.split(',').map((option) => option.trim())]);
}

/** Headers of a response that are not forwarded in their position, or not at all. */
const readApart: ReadonlySet<string> = new Set([...hopByHop, 'transfer-encoding', 'trailer', 'content-length']);
/** Lengths of these names. Other lengths need no conversion to lower case. */
const lengthsReadApart: ReadonlySet<number> = new Set(Array.from(readApart, ({ length }) => length));

/** Reads the response headers for the next hop; `undefined` if the transfer coding cannot be forwarded. */
export function readResponseHeaders(rawHeaders: HeaderList, mayTrail: boolean): HeaderList | undefined {
  const headers: string[] = [];
  const announced: string[] = [];
  const length: string[] = [];
  let named: ReadonlySet<string> | undefined;
  let isChunked = false;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = rawHeaders[i + 1] ?? '';
    const lower = lengthsReadApart.has(name.length) ? name.toLowerCase() : '';
    if (!readApart.has(lower)) headers.push(name, value);
    else if (lower === 'connection') named = addConnectionOptions(named, value);
    else if (lower === 'content-length') length.push(name, value);
    else if (lower === 'trailer') announced.push(name, value);
    else if (lower === 'transfer-encoding') {
      if (isChunked || value.toLowerCase() !== 'chunked') return undefined;
      isChunked = true;
    }
  }
  const kept =
    named === undefined ? headers : filterHeaders(headers, (name) => named?.has(name.toLowerCase()) !== true);
  // Node rewrites a Content-Disposition that follows a Content-Length, and throws for a Trailer if no trailers can follow.
  if (!isChunked) kept.push(...length);
  else if (mayTrail) kept.push(...announced);
  return kept;
}

/**
 * Reports whether a response has no body by definition (RFC 9112 §6.3). Its connection is closed: an upstream that sends a
 * body nevertheless may send it when the next client's request is already in flight, and no delay rules that out.
 */
export function endsConnection(method: string, status: number): boolean {
  return method === 'HEAD' || status === 204 || status === 304;
}

function filterHeaders(headers: HeaderList, isKept: (name: string) => boolean): string[] {
  const kept: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (isKept(name)) kept.push(name, headers[i + 1] ?? '');
  }
  return kept;
}

/** Formats the lines of a head without a body, so without its length. */
export function formatLines(headers: HeaderList): string {
  let lines = '';
  for (let i = 0; i < headers.length; i += 2) {
    if (!/^content-length$/i.test(headers[i] ?? '')) lines += `${headers[i]}: ${headers[i + 1]}\r\n`;
  }
  return lines;
}

/** Reports whether a list has a header, in any case, with a value of this form. Default: any value. */
export function hasHeader(headers: HeaderList, name: string, form?: RegExp): boolean {
  for (let i = 0; i < headers.length; i += 2) {
    const each = headers[i] ?? '';
    // Compares lengths first, because this runs for every header.
    const isNamed = each.length === name.length && each.toLowerCase() === name.toLowerCase();
    if (isNamed && (form === undefined || form.test(headers[i + 1] ?? ''))) return true;
  }
  return false;
}

/** Adds the gate's headers. They replace headers of the same name, except Vary. */
export function mergeHeaders(headers: HeaderList, added: HeaderList, prefersUpstreamCors: boolean): string[] {
  const keepsCors = prefersUpstreamCors && hasHeader(headers, 'access-control-allow-origin');
  const ours = keepsCors ? filterHeaders(added, (name) => !/^access-control-/i.test(name)) : added;
  const merged = filterHeaders(headers, (name) => !hasHeader(ours, name) || /^vary$/i.test(name));
  merged.push(...ours);
  return merged;
}

/** Reads the fields that are allowed in trailers; for a request, those that pass as headers too. */
export function readTrailers(rawTrailers: HeaderList, findAction?: FindHeaderAction): [string, string][] {
  const trailers: [string, string][] = [];
  for (let i = 0; i < rawTrailers.length; i += 2) {
    const name = rawTrailers[i] ?? '';
    const passes = isTrailer(name) && (findAction === undefined || findAction(name) === 'pass');
    if (passes) trailers.push([name, rawTrailers[i + 1] ?? '']);
  }
  return trailers;
}

const untrailed =
  /^(?:content-|if-|accept|cookie|set-cookie|www-authenticate|cache-control|pragma|range|max-forwards|age|date|expires|location|mcp-|retry-after|vary|warning|trailer$)/;

/** Reports whether a field is allowed in trailers: not for framing, routing, authentication or control (RFC 9110 §6.5.1). */
function isTrailer(name: string): boolean {
  const spelled = foldHeaderName(name);
  return !guarded.has(spelled) && !spelled.startsWith(guardedPrefix) && !untrailed.test(spelled);
}
