import { isIPv4 } from 'node:net';
import { domainToASCII } from 'node:url';
import type { ExternalUrl } from '../../core/http/external-url.ts';
import type { ResourceRequest } from '../../core/http/request.ts';
import { Refused } from '../../core/refused.ts';
import { showText } from '../../core/shown-text.ts';

export interface RequestPath {
  /** Decoded once; an encoded slash is {@link slashMark}. */
  readonly segments: readonly string[];
  readonly hasEncodedSlash: boolean;
}

/** Encoded slash inside a segment. No segment contains this character itself, because control characters are refused. */
export const slashMark = '\0';

const deceitfulEscape = /%(?:[01][\da-f]|7f|5c|2e|3b|3f|23)/i;
const escapeOrControl = /%[\da-f]{2}|[\u0080-\u009f]/i;

/**
 * Reads the path of a request target. `undefined` if the next reader may read another path: dot
 * segments, `//`, `;`, `\`, `#`, and escapes of separators. All other escapes are decoded: `%40` and `@` are one
 * character to every upstream, so a rule must not distinguish them.
 */
export function readRequestPath(target: string): RequestPath | undefined {
  if (target.charCodeAt(0) !== 0x2f) return undefined;
  const query = target.indexOf('?');
  const end = query < 0 ? target.length : query;
  const segments: string[] = [];
  let start = 1;
  let hasEscape = false;
  for (let i = 1; i < end; i++) {
    const code = target.charCodeAt(i);
    if (code === 0x2f) {
      if (i === start) return undefined;
      segments.push(target.slice(start, i));
      start = i + 1;
    } else if (code === 0x25) {
      hasEscape = true;
    } else if (code <= 0x20 || code >= 0x7f || code === 0x5c || code === 0x3b || code === 0x23) {
      return undefined;
    }
  }
  // One slash at the end makes no difference.
  if (start < end) segments.push(target.slice(start, end));
  if (hasEscape) return decodeSegments(segments);
  return segments.some(isDotSegment) ? undefined : { segments, hasEncodedSlash: false };
}

function decodeSegments(encoded: readonly string[]): RequestPath | undefined {
  const segments: string[] = [];
  let hasEncodedSlash = false;
  for (const text of encoded) {
    const segment = text.includes('%') ? decodeSegment(text) : text;
    if (segment === undefined) return undefined;
    const parts = segment.split(slashMark);
    // The next reader may treat an encoded slash as a plain one, which would make these dot segments.
    if (parts.some(isDotSegment)) return undefined;
    if (parts.length > 1) hasEncodedSlash = true;
    segments.push(segment);
  }
  return { segments, hasEncodedSlash };
}

function decodeSegment(text: string): string | undefined {
  if (deceitfulEscape.test(text)) return undefined;
  let decoded: string;
  try {
    decoded = decodeURIComponent(text.replace(/%2f/gi, '%00'));
  } catch {
    return undefined; // an invalid escape or invalid UTF-8
  }
  // A careless reader would decode a remaining escape a second time.
  return escapeOrControl.test(decoded) ? undefined : decoded;
}

function isDotSegment(segment: string): boolean {
  return segment === '.' || segment === '..';
}

/** A host name, without and with its port, in the form that rules are compared with. */
export type RequestHost = ReturnType<typeof readOriginHost>;

/** Reads the host of an origin such as `https://api.example:8443`, in lower case and without the default port. */
export function readOriginHost(origin: string) {
  const text = origin.slice(origin.indexOf('//') + 2);
  const colon = text.indexOf(':', text.lastIndexOf(']') + 1);
  const name = normaliseName(colon < 0 ? text : text.slice(0, colon));
  return { name, nameAndPort: colon < 0 ? name : name + text.slice(colon) };
}

/** An IPv6 address, or a name that URL parsers read as an IPv4 address. */
export const addressForm = /^\[|(?:^|\.)(?:\d+|0x[\da-f]*)$/;

/** Normalises a name in lower case: no trailing dot or spelling of an address may bypass the rules of a host. */
export function normaliseName(lowerCase: string): string {
  const name = lowerCase.endsWith('.') ? lowerCase.slice(0, -1) : lowerCase;
  return addressForm.test(name) && !isIPv4(name) ? domainToASCII(name) || name : name;
}

/** Maximum length of a shown host or path, after escaping. */
const maxLength = 256;
/** A token in a path, such as in a link for a password. */
const token = /eyJ[\w-]{8}[\w.-]*/g;

/** Describes the target of a request without its query. */
export function describeTarget(
  { target, url, headers }: ResourceRequest,
  externalUrl: ExternalUrl | Refused | undefined,
): { readonly host: string; readonly path: string } {
  const host =
    externalUrl === undefined || externalUrl instanceof Refused
      ? (headers.get('host') ?? '')
      : externalUrl.origin.replace(/^.*\//, '');
  const path = (target ?? readTarget(url)).replace(/[?#].*$/s, '');
  return { host: show(host), path: show(path) };
}

function show(text: string): string {
  const shown = showText(text.slice(0, maxLength * 2).replace(token, '***'), Number.POSITIVE_INFINITY);
  return shown.length > maxLength ? `${shown.slice(0, maxLength - 1)}…` : shown;
}

export function readTarget(url: string): string {
  const path = url.indexOf('/', url.indexOf('//') + 2);
  return path < 0 ? '/' : url.slice(path);
}

/** Subprotocols that a browser offers with its token: it cannot set `Authorization` for a WebSocket. */
export type OfferedToken = NonNullable<ReturnType<typeof readOfferedToken>>;

/** `bearer`, in each spelling that another reader could treat as the subprotocol. */
const anyBearer = /^\W*bearer(?![\w!#$%&'*+.^`|~-])/i;
/** RFC 6455 §4.1: a token of RFC 9110. */
const subprotocol = /^[\w!#$%&'*+.^`|~-]+$/;
/** Sec-WebSocket-Key (RFC 6455 §4.1): 16 bytes. */
export const webSocketKey = /^[\w+/]{22}==$/;

/** Reads the token that the handshake of a WebSocket offers. `undefined` for every other request. */
export function readHandshakeToken({ method, headers }: ResourceRequest): OfferedToken | undefined {
  const read = (name: string): string => headers.get(name)?.toLowerCase() ?? '';
  const isHandshake =
    method === 'GET' &&
    read('upgrade') === 'websocket' &&
    /\bupgrade\b/.test(read('connection')) &&
    webSocketKey.test(read('sec-websocket-key'));
  return isHandshake ? readOfferedToken(headers) : undefined;
}

/**
 * Reads the token among the subprotocols of any request, if they contain `bearer`, and the others, for the upstream. The token
 * is `undefined` for any other use of `bearer` than once, directly before it.
 */
export function readOfferedToken(headers: ResourceRequest['headers']) {
  const offered =
    headers
      .get('sec-websocket-protocol')
      ?.split(',')
      .map((each) => each.replace(/^[ \t]+|[ \t]+$/g, '')) ?? [];
  const starts = offered.flatMap((each, index) => (anyBearer.test(each) ? [index] : []));
  const [at = -1] = starts;
  if (at < 0) return undefined;
  const removed = new Set(starts.flatMap((index) => offered.slice(index, index + 2)));
  const others = offered.filter((each) => !removed.has(each));
  const token = offered[at + 1] ?? '';
  const isPair =
    starts.length === 1 &&
    offered[at] === 'bearer' &&
    subprotocol.test(token) &&
    others.length === offered.length - removed.size;
  return { token: isPair ? token : undefined, others: others.join(', ') };
}
