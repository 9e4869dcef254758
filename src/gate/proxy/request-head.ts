import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ExternalUrl } from '../../core/http/external-url.ts';
import type { HeldBody } from '../../core/mcp/held-body.ts';
import { Refused } from '../../core/refused.ts';
import type { HeaderList, TakeSocket } from '../../server/http/exchange.ts';
import type { IdentityValues } from '../identity/identity-headers.ts';
import { readOriginHost, webSocketKey } from '../match/request-target.ts';
import type { Rule } from '../match/rules.ts';
import { addConnectionOptions, findHeaderActions, framingHeaders } from './headers.ts';

/** A request to forward, and what the gate decided about it. */
export interface Forwarding {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  /** Detaches the connection of an upgrade request, once the upstream has agreed. */
  readonly takeSocket: TakeSocket | undefined;
  readonly identity: Pick<IdentityValues, 'names' | 'values'>;
  /** URL that the client called, from which X-Forwarded-Proto, -Host and -Prefix are set. */
  readonly externalUrl: ExternalUrl;
  /** True if the peer's X-Forwarded-For is trusted and forwarded. */
  readonly isPeerTrusted: boolean;
  readonly credentials: Rule['credentials'];
  /** Sent as Authorization instead of the client's. */
  readonly authorization?: string | undefined;
  /** Called with the head of a response. Returns true if it discards the response and sends the request once more. */
  readonly repeat?: ((status: number, headers: HeaderList) => boolean) | undefined;
  /** The part of the body that was read; the rest follows. */
  readonly held?: HeldBody | undefined;
  /** Sent as X-Request-Id. */
  readonly requestId: string;
  /** Headers, by names in lower case, that replace the client's: a trace, subprotocols. An empty one is not sent. */
  readonly replaced?: ReadonlyMap<string, string> | undefined;
  /** Its first segments are those that the upstream does not get. */
  readonly rule: Pick<Rule, 'stripPrefix' | 'strippedSegments'>;
  /** Headers for the client's response, which replace the upstream's. */
  readonly responseHeaders: HeaderList;
  /** True if the upstream's CORS headers replace the CORS headers of {@link Forwarding.responseHeaders}. */
  readonly prefersUpstreamCors: boolean;
  /** Client as named by {@link namePeer}; a client without an address has no share. */
  readonly client: string;
  /** Follows the token of a stream. Returns a refusal if it has ended, otherwise the function that stops this. */
  readonly followToken?: ((end: () => void) => (() => void) | Refused | undefined) | undefined;
  /** Responds with the refusal; called at most once, and only before a response has started. */
  readonly refuse: (error: Refused) => void;
  /** Called if a started response fails; the client's connection is closed then. */
  readonly onCut: (error: Refused) => void;
  /** Called once, after the last byte for the client. */
  readonly onDone?: () => void;
}

/** Target and end of a request, on which all readers must agree. */
export type Framing = Exclude<ReturnType<typeof readFraming>, Refused>;

export type RequestHead = ReturnType<typeof createRequestHead>;

/** The gate's name in Via (RFC 9110 §7.6.3). */
const pseudonym = 'portcullis';
const trailer = 'trailer';
const visible = /^[\x21-\x7e]+$/;
/** Number of digits that a JavaScript number represents exactly. */
const lengthGrammar = /^\d{1,15}$/;

const framingParts = new Map(
  (['Host', 'Content-Length', 'Transfer-Encoding', 'Connection'] as const).map((part) => [part.length, part]),
);

/** Reads the target and end of a request, and refuses what another server might read differently, as Node may too. */
export function readFraming(incoming: Pick<IncomingMessage, 'rawHeaders' | 'httpVersion' | 'url'>) {
  const { rawHeaders, httpVersion } = incoming;
  const ambiguous = (part: string): Refused => new Refused('ambiguous_request', { context: { part } });
  // Node also accepts 0.9 and 2.0.
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return ambiguous('version');
  let host: string | undefined;
  let length: string | undefined;
  let isChunked = false;
  /** Names of headers in Connection, in lower case. */
  let named: ReadonlySet<string> | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    // Compares lengths first, because this runs for every header.
    const part = framingParts.get(name.length);
    if (part === undefined || (name !== part && name.toLowerCase() !== part.toLowerCase())) continue;
    const value = rawHeaders[i + 1] ?? '';
    if (part === 'Host') {
      if (host !== undefined || value === '') return ambiguous(part);
      host = value;
    } else if (part === 'Content-Length') {
      if (length !== undefined || !lengthGrammar.test(value)) return ambiguous(part);
      length = value;
    } else if (part === 'Transfer-Encoding') {
      // A proxy must decode other codings (RFC 9112 §6.1).
      if (isChunked || value.toLowerCase() !== 'chunked') return ambiguous(part);
      isChunked = true;
    } else named = addConnectionOptions(named, value);
  }
  // The next reader might remove a framing header that Connection names.
  if (named !== undefined && framingHeaders.some((name) => named.has(name))) return ambiguous('Connection');
  if (host === undefined) return ambiguous('Host');
  if (isChunked && (length !== undefined || httpVersion !== '1.1')) return ambiguous('Transfer-Encoding');
  const target = readTarget(incoming, host);
  if (target === undefined) return ambiguous('request target');
  const body = isChunked ? ('chunked' as const) : Number(length ?? 0) || ('none' as const);
  return { target, body, tellsLength: length !== undefined, named };
}

/** Reads the framing of a request that was copied unchanged. Its URL has the authority of Host, unless its target has another. */
export function readCopiedFraming({ url, rawHeaders }: Readonly<{ url: string; rawHeaders: readonly string[] }>) {
  const host = rawHeaders[rawHeaders.findIndex((name, i) => i % 2 === 0 && /^host$/i.test(name)) + 1] ?? '';
  const rest = url.replace(/^https?:\/\//i, '');
  const target = rest.startsWith(host) ? rest.slice(host.length) : url;
  return readFraming({ rawHeaders: [...rawHeaders], httpVersion: '1.1', url: target });
}

/** Reads the target for an origin server (RFC 9112 §3.2.1): a path, even if the client sent a URL. */
function readTarget({ url = '' }: Pick<IncomingMessage, 'url'>, host: string): string | undefined {
  if (!visible.test(url)) return undefined;
  if (url.charCodeAt(0) === 0x2f) return url;
  const [, authority = '', rest = ''] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(url) ?? [];
  // RFC 9112 §3.2.2 prefers the URL. A reader of Host would see another server, so both must be equal.
  if (authority.toLowerCase() !== host.toLowerCase() || authority === '') return undefined;
  return rest.startsWith('/') ? rest : undefined;
}

export function createRequestHead(forwarding: Forwarding, framing: Framing) {
  const { incoming, externalUrl, identity, rule, replaced } = forwarding;
  const { rawHeaders, method = '', httpVersion, socket } = incoming;
  const { body, named } = framing;
  const actions = findHeaderActions(identity.names, forwarding.credentials);
  const host = readOriginHost(externalUrl.origin).nameAndPort;
  // The host that the rule was found by, so that a rule never decides on a host that the upstream does not see.
  const headers: string[] = ['Host', host];
  let expectsContinue = false;
  let forwardedFor = '';
  let via = '';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    // Node throws for a Trailer if no trailers can follow.
    if (body !== 'chunked' && name.length === trailer.length && name.toLowerCase() === trailer) continue;
    const action = actions(name);
    if (action === 'drop' || named?.has(name.toLowerCase()) === true || isReplaced(name, replaced)) continue;
    const value = rawHeaders[i + 1] ?? '';
    if (action === 'pass') headers.push(name, value);
    else if (action === 'expect') expectsContinue = value.toLowerCase() === '100-continue';
    else if (action === 'via') via += `${value}, `;
    else if (forwarding.isPeerTrusted) forwardedFor += `${value}, `;
  }
  const prefix = externalUrl.prefix + rule.stripPrefix;
  headers.push('Via', `${via}${httpVersion} ${pseudonym}`);
  headers.push('X-Forwarded-For', forwardedFor + showAddress(socket.remoteAddress));
  headers.push('X-Forwarded-Proto', externalUrl.origin.startsWith('https:') ? 'https' : 'http');
  headers.push('X-Forwarded-Host', host);
  if (prefix !== '') headers.push('X-Forwarded-Prefix', prefix);
  headers.push('X-Request-Id', forwarding.requestId);
  for (const [name, value] of replaced ?? []) if (value !== '') headers.push(name, value);
  for (const [i, name] of identity.names.entries()) {
    const value = identity.values[i];
    if (value !== undefined) headers.push(name, value);
  }
  if (forwarding.authorization !== undefined) headers.push('Authorization', forwarding.authorization);
  if (body === 'none' && framing.tellsLength) headers.push('Content-Length', '0');
  return {
    method,
    target: stripSegments(framing.target, rule.strippedSegments),
    headers,
    body,
    // A client whose body was read has already got its 100 response.
    expectsContinue: expectsContinue && body !== 'none' && (forwarding.held?.chunks.length ?? 0) === 0,
    isWebSocket: body === 'none' && isWebSocketRequest(forwarding),
  };
}

/** Reports whether the gate sends its own header instead. A client's tracestate belongs to its traceparent. */
function isReplaced(name: string, replaced: Forwarding['replaced']): boolean {
  if (replaced === undefined) return false;
  const lower = name.toLowerCase();
  return replaced.has(lower) || (lower === 'tracestate' && replaced.has('traceparent'));
}

function stripSegments(target: string, count: number): string {
  if (count === 0) return target;
  const query = target.indexOf('?');
  const end = query < 0 ? target.length : query;
  let at = 0;
  for (let i = 0; i < count && at < end; i++) {
    const next = target.indexOf('/', at + 1);
    at = next < 0 || next > end ? end : next;
  }
  const rest = target.slice(at);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Shows an IPv4 address on a dual-stack socket as IPv4. */
function showAddress(address = 'unknown'): string {
  return address.startsWith('::ffff:') ? address.slice(7) : address;
}

/** Reports whether a request is for a WebSocket. After another upgrade, such as to h2c, requests would bypass the gate. */
function isWebSocketRequest({ incoming, takeSocket }: Forwarding): boolean {
  if (takeSocket === undefined || incoming.method !== 'GET' || incoming.httpVersion !== '1.1') return false;
  const { upgrade, 'sec-websocket-key': key } = incoming.headers;
  return upgrade?.toLowerCase() === 'websocket' && typeof key === 'string' && webSocketKey.test(key);
}

/** Creates the reader of framing. A refusal closes the connection, because its next bytes are not trustworthy. */
export function createExamine() {
  const doubtful = new WeakMap<Socket, Refused>();
  /** Must run in the iteration in which the request arrived. */
  return (incoming: IncomingMessage, outgoing: ServerResponse): Framing | Refused => {
    const { socket } = incoming;
    const framing = doubtful.get(socket) ?? readFraming(incoming);
    if (framing instanceof Refused) {
      doubtful.set(socket, framing);
      outgoing.shouldKeepAlive = false;
    }
    return framing;
  };
}
