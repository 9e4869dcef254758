import type { IncomingMessage } from 'node:http';
import { Refused } from '../../refused.ts';
import { readOriginHost } from '../match/rule-host.ts';
import type { Forwarding } from './forwarding.ts';
import {
  findFramingPart,
  findHeaderActions,
  type HeaderAction,
  namesFraming,
  readConnectionOptions,
} from './header-names.ts';

/** Target and end of a request, on which all readers must agree. */
export interface Framing {
  readonly target: string;
  /** Length of the body in bytes, or `chunked`. */
  readonly body: 'none' | 'chunked' | number;
  /** True if the request has a Content-Length, even 0. */
  readonly tellsLength: boolean;
}

export interface RequestHead {
  readonly method: string;
  readonly target: string;
  /** Names and values alternately, without framing headers except an explicit length of 0. */
  readonly headers: readonly string[];
  readonly body: Framing['body'];
  readonly expectsContinue: boolean;
}

/** The gate's name in Via (RFC 9110 §7.6.3). */
const pseudonym = 'portcullis';
const visible = /^[\x21-\x7e]+$/;
/** Number of digits that a JavaScript number represents exactly. */
const lengthGrammar = /^\d{1,15}$/;

const ambiguous = (part: string): Refused => new Refused('ambiguous_request', { context: { part } });

/**
 * Reads the target and end of a request, and refuses what another server might read differently. Node's parser already
 * refuses much of it; this function does not rely on that.
 */
export function readFraming(incoming: IncomingMessage): Framing | Refused {
  const { rawHeaders, httpVersion } = incoming;
  // Node also accepts 0.9 and 2.0.
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return ambiguous('version');
  let host: string | undefined;
  let length: string | undefined;
  let isChunked = false;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const part = findFramingPart(name);
    if (part === undefined) continue;
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
    } else if (value !== 'keep-alive' && value !== 'close' && namesFraming(value)) return ambiguous(part);
  }
  if (host === undefined) return ambiguous('Host');
  if (isChunked && (length !== undefined || httpVersion !== '1.1')) return ambiguous('Transfer-Encoding');
  const target = readTarget(incoming, host);
  if (target === undefined) return ambiguous('request target');
  const body = isChunked ? 'chunked' : Number(length ?? 0) || 'none';
  // Node treats the body of such a request as the first bytes of the other protocol.
  const { upgrade } = incoming as { readonly upgrade?: boolean }; // not in the types; node:http sets it
  if (upgrade === true && body !== 'none') return ambiguous('Upgrade');
  return { target, body, tellsLength: length !== undefined };
}

export function createRequestHead(forwarding: Forwarding, framing: Framing): RequestHead {
  const { incoming } = forwarding;
  const { rawHeaders, method = '', httpVersion } = incoming;
  const actions = findHeaderActions(forwarding.identity.names, forwarding.credentials);
  const named = readConnectionOptions(rawHeaders);
  const host = readOriginHost(forwarding.externalUrl.origin).nameAndPort;
  // The host that the rule was found by, so that a rule never decides on a host that the upstream does not see.
  const headers: string[] = ['Host', host];
  let expectsContinue = false;
  let forwardedFor = '';
  let via = '';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const action: HeaderAction = actions(name);
    if (action === 'drop' || named?.has(name.toLowerCase()) === true || isReplaced(name, forwarding.trace)) continue;
    const value = rawHeaders[i + 1] ?? '';
    if (action === 'pass') headers.push(name, value);
    else if (action === 'expect') expectsContinue = value.toLowerCase() === '100-continue';
    else if (action === 'via') via += `${value}, `;
    else if (forwarding.isPeerTrusted) forwardedFor += `${value}, `;
  }
  appendGateHeaders(headers, forwarding, { host, forwardedFor, via: `${via}${httpVersion} ${pseudonym}` });
  if (framing.body === 'none' && framing.tellsLength) headers.push('Content-Length', '0');
  const target =
    forwarding.strip === undefined ? framing.target : stripSegments(framing.target, forwarding.strip.segments);
  // A client whose body was read has already got its 100 response.
  const awaitsBody = expectsContinue && (forwarding.held?.chunks.length ?? 0) === 0;
  return { method, target, headers, body: framing.body, expectsContinue: awaitsBody };
}

/** Reports whether the gate sends its own header instead. A client's tracestate belongs to its traceparent. */
function isReplaced(name: string, trace: Forwarding['trace']): boolean {
  if (trace === undefined) return false;
  const lowered = name.toLowerCase();
  return trace.has(lowered) || (lowered === 'tracestate' && trace.has('traceparent'));
}

interface Chain {
  readonly host: string;
  readonly forwardedFor: string;
  readonly via: string;
}

function appendGateHeaders(headers: string[], forwarding: Forwarding, chain: Chain): void {
  const { incoming, externalUrl, identity, strip, requestId, trace } = forwarding;
  const { origin } = externalUrl;
  const prefix = externalUrl.prefix + (strip?.prefix ?? '');
  headers.push('Via', chain.via);
  headers.push('X-Forwarded-For', chain.forwardedFor + describePeer(incoming));
  headers.push('X-Forwarded-Proto', origin.charCodeAt(4) === 0x3a ? 'http' : 'https');
  headers.push('X-Forwarded-Host', chain.host);
  if (prefix !== '') headers.push('X-Forwarded-Prefix', prefix);
  if (requestId !== undefined) headers.push('X-Request-Id', requestId);
  for (const [name, value] of trace ?? []) headers.push(name, value);
  for (const [i, name] of identity.names.entries()) {
    const value = identity.values[i];
    if (value !== undefined) headers.push(name, value);
  }
}

function stripSegments(target: string, count: number): string {
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

function describePeer({ socket }: IncomingMessage): string {
  const { remoteAddress = 'unknown' } = socket;
  // An IPv4 address on a dual-stack socket.
  return remoteAddress.startsWith('::ffff:') ? remoteAddress.slice(7) : remoteAddress;
}

/** Reads the target for an origin server (RFC 9112 §3.2.1): a path, even if the client sent a URL. */
function readTarget({ url = '' }: IncomingMessage, host: string): string | undefined {
  if (!visible.test(url)) return undefined;
  if (url.charCodeAt(0) === 0x2f) return url;
  const [, authority = '', rest = ''] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(url) ?? [];
  // RFC 9112 §3.2.2 prefers the URL. A reader of Host would see another server, so both must be equal.
  if (authority.toLowerCase() !== host.toLowerCase() || authority === '') return undefined;
  return rest.startsWith('/') ? rest : undefined;
}
