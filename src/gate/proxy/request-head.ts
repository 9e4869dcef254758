import type { IncomingMessage } from 'node:http';
import { AccessError } from '../../failures.ts';
import { readOriginHost } from '../match/rule-host.ts';
import type { Forwarding } from './forwarding.ts';
import { type Fate, findFates, findFramingPart, namesFraming, removedByConnection } from './header-names.ts';

/** Where a request goes, and where it ends: what all who read it must agree on. */
export interface Framing {
  /** A path with its query. */
  readonly target: string;
  /** How long the body is: absent, a number of bytes, or told chunk by chunk. */
  readonly body: 'none' | 'chunked' | number;
  /** Whether the length was told, though it is 0. */
  readonly tellsLength: boolean;
}

/** The head of a request as it goes to the upstream. */
export interface RequestHead {
  readonly method: string;
  readonly target: string;
  /** Names and values in turn, without those that say how long the body is; but for a length of 0 that was told. */
  readonly headers: readonly string[];
  readonly body: Framing['body'];
  readonly expectsContinue: boolean;
}

/** Our name in Via (RFC 9110 §7.6.3). */
const pseudonym = 'portcullis';
const visible = /^[\x21-\x7e]+$/;
/** As many digits as a number holds exactly. */
const lengthGrammar = /^\d{1,15}$/;

const ambiguous = (part: string): AccessError => new AccessError('ambiguous_request', { context: { part } });

/**
 * Reads where a request goes and ends, and refuses what another server might read in another way. Node's parser has
 * refused much of this already; nothing here relies on that.
 */
export function readFraming(incoming: IncomingMessage): Framing | AccessError {
  const { rawHeaders, httpVersion } = incoming;
  // Node takes 0.9 and 2.0 as well.
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
      // Other codings would have to be decoded by whoever forwards (RFC 9112 §6.1).
      if (isChunked || value.toLowerCase() !== 'chunked') return ambiguous(part);
      isChunked = true;
    } else if (value !== 'keep-alive' && value !== 'close' && namesFraming(value)) return ambiguous(part);
  }
  if (host === undefined) return ambiguous('Host');
  if (isChunked && (length !== undefined || httpVersion !== '1.1')) return ambiguous('Transfer-Encoding');
  const target = readTarget(incoming, host);
  if (target === undefined) return ambiguous('request target');
  const body = isChunked ? 'chunked' : Number(length ?? 0) || 'none';
  // Node takes the body of such a request for the first bytes of the other protocol.
  const { upgrade } = incoming as { readonly upgrade?: boolean }; // not in the types; node:http sets it
  if (upgrade === true && body !== 'none') return ambiguous('Upgrade');
  return { target, body, tellsLength: length !== undefined };
}

/** Makes the head that goes to the upstream. */
export function createRequestHead(forwarding: Forwarding, framing: Framing): RequestHead {
  const { incoming } = forwarding;
  const { rawHeaders, method = '', httpVersion } = incoming;
  const fates = findFates(forwarding.identity.names, forwarding.credentials);
  const named = removedByConnection(rawHeaders);
  const host = readOriginHost(forwarding.externalUrl.origin).nameAndPort;
  // The host that the rule was found by, so a rule never decides about another host than the one that the upstream sees.
  const headers: string[] = ['Host', host];
  let expectsContinue = false;
  let forwardedFor = '';
  let via = '';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const fate: Fate = fates(name);
    if (fate === 'drop' || named?.has(name.toLowerCase()) === true) continue;
    const value = rawHeaders[i + 1] ?? '';
    if (fate === 'pass') headers.push(name, value);
    else if (fate === 'expect') expectsContinue = value.toLowerCase() === '100-continue';
    else if (fate === 'via') via += `${value}, `;
    else if (forwarding.isPeerTrusted) forwardedFor += `${value}, `;
  }
  appendOurs(headers, forwarding, { host, forwardedFor, via: `${via}${httpVersion} ${pseudonym}` });
  if (framing.body === 'none' && framing.tellsLength) headers.push('Content-Length', '0');
  return { method, target: framing.target, headers, body: framing.body, expectsContinue };
}

interface Chain {
  readonly host: string;
  readonly forwardedFor: string;
  readonly via: string;
}

function appendOurs(headers: string[], { incoming, externalUrl, identity }: Forwarding, chain: Chain): void {
  const { origin, prefix } = externalUrl;
  headers.push('Via', chain.via);
  headers.push('X-Forwarded-For', chain.forwardedFor + describePeer(incoming));
  headers.push('X-Forwarded-Proto', origin.charCodeAt(4) === 0x3a ? 'http' : 'https');
  headers.push('X-Forwarded-Host', chain.host);
  if (prefix !== '') headers.push('X-Forwarded-Prefix', prefix);
  for (let i = 0; i < identity.names.length; i++) headers.push(identity.names[i] ?? '', identity.values[i] ?? '');
}

function describePeer({ socket }: IncomingMessage): string {
  const { remoteAddress = 'unknown' } = socket;
  // IPv4 on a socket for both families.
  return remoteAddress.startsWith('::ffff:') ? remoteAddress.slice(7) : remoteAddress;
}

/** The target for an origin server (RFC 9112 §3.2.1): a path, also where the client sent a URL. */
function readTarget({ url = '' }: IncomingMessage, host: string): string | undefined {
  if (!visible.test(url)) return undefined;
  if (url.charCodeAt(0) === 0x2f) return url;
  const [, authority = '', rest = ''] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(url) ?? [];
  // RFC 9112 §3.2.2 prefers the URL. Who reads Host would see another server, so both must be the same.
  if (authority.toLowerCase() !== host.toLowerCase() || authority === '') return undefined;
  return rest.startsWith('/') ? rest : undefined;
}
