import { isIP, isIPv6 } from 'node:net';
import { LRUCache } from 'lru-cache';
import { Refused } from '../refused.ts';
import { parseRanges } from './address-ranges.ts';
import type { Connection, ResourceRequest } from './request.ts';

export interface ExternalUrl {
  /** `scheme://host[:port]`, lower case, without the default port. */
  readonly origin: string;
  /** Path prefix that a trusted proxy has removed: empty, or an absolute path without a trailing slash. */
  readonly prefix: string;
  /** The path with its prefix; spelled as the client spelled it. */
  readonly path: string;
  /** The origin and prefix that stand for whatever the request says; absent if nothing does. */
  readonly pinned?: string;
}

/** Finds the external URL of a request; `bad_host_header` or `bad_forwarded_header` if there is none. */
export type ReadExternalUrl = (request: ResourceRequest, connection: Connection | undefined) => ExternalUrl | Refused;

type UriScheme = 'http' | 'https';

const maxHostLength = 255;
const maxPort = 65_535;
const defaultPorts: Readonly<Record<UriScheme, number>> = { http: 80, https: 443 };

// Stricter than the reg-name of RFC 3986 §3.2.2: no percent-encoding, no sub-delims, no empty label.
const nameGrammar = /^[\w~-]+(?:\.[\w~-]+)*\.?$/;
// Without a zone (`%eth0`), which has a meaning only on one machine.
const literalGrammar = /^\[[\da-f:.]+\]$/;
const portGrammar = /^\d{1,5}$/;
// RFC 3986 §3.3 path-absolute with non-empty segments; no comma.
const prefixGrammar = /^(?:\/(?:[\w.~!$&'()*+;=:@-]|%[\da-f]{2})+)*\/?$/i;
// Dot segments, and the encoded spellings of dot, slash and backslash, mean another path to the next reader.
const prefixDeceit = /\.\.|\/\.(?:\/|$)|%(?:2e|2f|5c)/i;

/**
 * Creates the reader of external URLs. Headers of an untrusted peer are ignored, unread; headers of a trusted one must follow
 * their grammars. `pinned`: origin, and prefix, regardless of the request. Throws `TypeError` for a malformed entry or URL.
 */
export function createReadExternalUrl(options: { readonly trust: Trust; readonly pinned?: string }): ReadExternalUrl {
  const { trust, pinned } = options;
  const isTrusted = parseTrust(trust);
  const parsed = pinned === undefined ? undefined : parseBaseUrl(pinned);
  const base = parsed && { ...parsed, pinned: parsed.origin + parsed.prefix };
  if (pinned !== undefined && base === undefined) {
    throw new TypeError('externalUrl: write an http or https URL without query, fragment and credentials');
  }
  const read: ReadExternalUrl = (request, connection) => {
    const header = request.headers.get('host');
    const target =
      header === null || request.target === undefined || connection === undefined
        ? splitUrl(request.url)
        : { scheme: schemeOf(connection), host: header, path: cutPath(request.target) };
    if (target instanceof Refused) return target;
    // Valid always, also where a trusted proxy names another: whatever else reads it must not be misled.
    const host = parseHost(header ?? target.host);
    if (host === undefined) return new Refused('bad_host_header', { context: { header: 'Host' } });
    const scheme = connection === undefined ? target.scheme : schemeOf(connection);
    const forwarded = isTrusted(connection?.remoteAddress) ? readForwarded(request.headers) : nothingForwarded;
    if (forwarded instanceof Refused) return forwarded;
    // With a base they are ignored, but must be well-formed: no other reader may be misled.
    if (base !== undefined) return { ...base, path: base.prefix + target.path };
    const { prefix = '' } = forwarded;
    const origin = formatOrigin(forwarded.scheme ?? scheme, forwarded.host ?? host);
    return { origin, prefix, path: prefix + target.path };
  };
  return trust === 'none' ? rememberLast(read) : read;
}

export function parseBaseUrl(text: string): Pick<ExternalUrl, 'origin' | 'prefix'> | undefined {
  const [, scheme, authority = '', path = ''] = /^(https?):\/\/([^/?#]+)(\/[^?#]*)?$/i.exec(text) ?? [];
  const host = parseHost(authority);
  const prefix = path === '' ? '' : parsePrefix(path);
  if (scheme === undefined || host === undefined || prefix === undefined) return undefined;
  return { origin: formatOrigin(scheme.toLowerCase() === 'https' ? 'https' : 'http', host), prefix };
}

/** Caches the last result for a service with repeated URLs; only if Host is the only header that counts. */
function rememberLast(read: ReadExternalUrl): ReadExternalUrl {
  let last: { host: string; target: string; scheme: UriScheme; url: ExternalUrl } | undefined;
  return (request, connection) => {
    const { target } = request;
    const host = request.headers.get('host');
    if (connection === undefined || target === undefined || host === null) return read(request, connection);
    const scheme = schemeOf(connection);
    if (last !== undefined && host === last.host && target === last.target && scheme === last.scheme) return last.url;
    const url = read(request, connection);
    if (!(url instanceof Refused)) last = { host, target, scheme, url };
    return url;
  };
}

function schemeOf(connection: Connection): UriScheme {
  return connection.encrypted === true ? 'https' : 'http';
}

/** `URL` would rewrite the path (dot segments, backslashes, encodings), so the text itself is split. */
function splitUrl(url: string): Refused | { readonly scheme: UriScheme; readonly host: string; readonly path: string } {
  // The target of a request may be a URL of any scheme (RFC 9112 §3.2.2); here it is served only over HTTP.
  const start = url.slice(0, url.indexOf('//') + 2).toLowerCase();
  const scheme = start === 'https://' ? 'https' : 'http';
  if (start !== `${scheme}://`) return new Refused('bad_host_header', { context: { header: 'request target' } });
  const rest = url.slice(start.length);
  const hier = cutPath(rest);
  const slash = hier.indexOf('/');
  // RFC 3986 §6.2.3: an empty path is `/`.
  if (slash < 0) return { scheme, host: hier, path: '/' };
  return { scheme, host: hier.slice(0, slash), path: hier.slice(slash) };
}

function cutPath(text: string): string {
  const end = text.search(/[?#]/);
  return end < 0 ? text : text.slice(0, end);
}

/** A host in lower case, an IPv6 address in its brackets. */
type Host = { readonly name: string; readonly port: number | undefined };

/** Parses host [ ":" port ] (RFC 9110 §7.2): a name, an IPv4 address, or an IPv6 address in brackets. */
export function parseHost(text: string): Host | undefined {
  if (text.length > maxHostLength) return undefined;
  const colon = text.indexOf(':', text.lastIndexOf(']') + 1);
  const name = (colon < 0 ? text : text.slice(0, colon)).toLowerCase();
  if (!nameGrammar.test(name) && !(literalGrammar.test(name) && isIPv6(name.slice(1, -1)))) return undefined;
  if (colon < 0) return { name, port: undefined };
  const port = text.slice(colon + 1);
  return portGrammar.test(port) && Number(port) <= maxPort ? { name, port: Number(port) } : undefined;
}

function formatOrigin(scheme: UriScheme, { name, port }: Host): string {
  return port === undefined || port === defaultPorts[scheme] ? `${scheme}://${name}` : `${scheme}://${name}:${port}`;
}

const nothingForwarded = { scheme: undefined, host: undefined, prefix: undefined };

function readForwarded(headers: ResourceRequest['headers']) {
  const scheme = parseHeader(headers, 'X-Forwarded-Proto', parseForwardedScheme);
  if (scheme instanceof Refused) return scheme;
  const host = parseHeader(headers, 'X-Forwarded-Host', parseHost);
  if (host instanceof Refused) return host;
  const prefix = parseHeader(headers, 'X-Forwarded-Prefix', parsePrefix);
  return prefix instanceof Refused ? prefix : { scheme, host, prefix };
}

/** No grammar has a comma, so a list and a second line are refused: a proxy that appends lets its client write the first value. */
function parseHeader<T>(
  headers: ResourceRequest['headers'],
  header: string,
  parse: (value: string) => T | undefined,
): T | Refused | undefined {
  const value = headers.get(header);
  if (value === null) return undefined;
  return parse(value) ?? new Refused('bad_forwarded_header', { context: { header } });
}

/** Traefik names the scheme of a WebSocket. */
const spellings = { http: 'http', https: 'https', ws: 'http', wss: 'https' } as const;
const forwardedSchemes: ReadonlyMap<string, UriScheme> = new Map(Object.entries(spellings));

export function parseForwardedScheme(text: string): UriScheme | undefined {
  return forwardedSchemes.get(text.toLowerCase());
}

function parsePrefix(text: string): string | undefined {
  if (!text.startsWith('/') || !prefixGrammar.test(text) || prefixDeceit.test(text)) return undefined;
  return text.endsWith('/') ? text.slice(0, -1) : text;
}

/** Peers whose X-Forwarded-* headers are trusted: none, all, or these addresses and CIDR ranges. */
export type Trust = 'none' | 'all' | readonly string[];

/** Reports whether every address of a family is trusted: the ranges have both ends of each block with one first byte. */
export function trustsAll(trust: Trust): boolean {
  if (typeof trust === 'string') return trust === 'all';
  const bytes = Array.from({ length: 256 }, (_, byte) => byte);
  const ends = [
    bytes.flatMap((byte) => [`${byte}.0.0.0`, `${byte}.255.255.255`]),
    bytes.flatMap((byte) => [`${byte.toString(16)}00::`, `${byte.toString(16)}ff${':ffff'.repeat(7)}`]),
  ];
  return ends.some((addresses) => addresses.every(parseRanges(trust)));
}

/** Reports whether a peer is trusted; `undefined` is a peer that the runtime does not name. */
export type IsTrusted = (address: string | undefined) => boolean;

// A check against the list takes microseconds, and a deployment has few proxies.
const maxRememberedPeers = 256;

/** Parses the trusted peers once. A list trusts no peer without an address. Throws `TypeError` for another entry. */
export function parseTrust(trust: Trust): IsTrusted {
  if (trust === 'none') return () => false;
  if (trust === 'all') return () => true;
  const contains = parseRanges(trust);
  const answers = new LRUCache<string, boolean>({ max: maxRememberedPeers, memoMethod: contains });
  return (address) => address !== undefined && answers.memo(address);
}

/** Reads the sender of a request, as far as trusted; `undefined` if the transport does not name it. */
export type ReadClientAddress = (request: ResourceRequest, connection: Connection | undefined) => string | undefined;

/** Maximum number of addresses read from one X-Forwarded-For, from the end. */
const maxHops = 32;

/** Reads X-Forwarded-For from its end while the sender is trusted: each proxy adds the address that it saw. */
export function createReadClientAddress(trust: Trust): ReadClientAddress {
  if (trust === 'none') return (_, connection) => connection?.remoteAddress;
  const isTrusted = parseTrust(trust);
  return ({ headers }, connection) => {
    const address = connection?.remoteAddress;
    if (!isTrusted(address)) return address;
    const hops = headers.get('x-forwarded-for');
    return hops === null ? address : walkBack(hops, address, isTrusted);
  };
}

/** Returns the last untrusted hop; the list may be long, so it is not split. */
function walkBack(hops: string, peer: string | undefined, isTrusted: IsTrusted): string | undefined {
  let address = peer;
  let end = hops.length;
  for (let count = 0; count < maxHops && end >= 0; count++) {
    const comma = end === 0 ? -1 : hops.lastIndexOf(',', end - 1);
    const sender = readAddress(hops.slice(comma + 1, end).trim());
    if (sender === undefined) return address;
    address = sender;
    if (!isTrusted(address)) return address;
    end = comma;
  }
  return address;
}

/** Reads an address with or without a port. IPv6 with a port is in brackets. */
function readAddress(text: string): string | undefined {
  if (isIP(text) !== 0) return text;
  const address = parseHost(text)?.name.replace(/^\[|\]$/g, '') ?? '';
  return isIP(address) === 0 ? undefined : address;
}
