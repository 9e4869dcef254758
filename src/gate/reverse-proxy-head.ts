import type { IncomingMessage } from 'node:http';
import { AccessError } from '../failures.ts';
import type { Forwarding } from './reverse-proxy-forwarding.ts';
import { type Fate, findFates, removedByConnection } from './reverse-proxy-names.ts';

/** The head of a request as it goes to the upstream. */
export interface RequestHead {
  readonly method: string;
  /** A path with its query. */
  readonly target: string;
  /** Names and values in turn, without those that say how long the body is. */
  readonly headers: readonly string[];
  /** How long the body is: absent, a number of bytes, or told chunk by chunk. */
  readonly framing: 'none' | 'chunked' | number;
  readonly expectsContinue: boolean;
}

/** Our name in Via (RFC 9110 §7.6.3). */
const pseudonym = 'portcullis';
const visible = /^[\x21-\x7e]+$/;
const maxLength = /^\d{1,15}$/;

const ambiguous = (part: string): AccessError => new AccessError('ambiguous_request', { context: { part } });

/**
 * Makes the head that goes to the upstream, and refuses one that the upstream might read in another way than we did.
 * Node's parser has refused much already; nothing here relies on that.
 */
export function readRequestHead(forwarding: Forwarding): RequestHead | AccessError {
  const { incoming } = forwarding;
  const { rawHeaders, method = '', httpVersion } = incoming;
  const fates = findFates(forwarding.identity.names, forwarding.pass);
  const named = removedByConnection(rawHeaders);
  if (named === 'ambiguous') return ambiguous('Connection');

  const headers: string[] = ['Host', ''];
  let host: string | undefined;
  let length: string | undefined;
  let coding: string | undefined;
  let expectsContinue = false;
  let forwardedFor = '';
  let via = '';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = rawHeaders[i + 1] ?? '';
    const fate: Fate = fates(name);
    if (fate === 'drop' || named?.has(name.toLowerCase()) === true) continue;
    if (fate === 'pass') headers.push(name, value);
    else if (fate === 'host') {
      if (host !== undefined) return ambiguous('Host');
      host = value;
    } else if (fate === 'length') {
      if (length !== undefined || !maxLength.test(value)) return ambiguous('Content-Length');
      length = value;
    } else if (fate === 'coding') {
      // Other codings would have to be decoded by whoever forwards (RFC 9112 §6.1).
      if (coding !== undefined || value.toLowerCase() !== 'chunked') return ambiguous('Transfer-Encoding');
      coding = value;
    } else if (fate === 'expect') expectsContinue = value.toLowerCase() === '100-continue';
    else if (fate === 'forwardedFor') {
      if (forwarding.isPeerTrusted) forwardedFor += `${value}, `;
    } else via += `${value}, `;
  }
  if (host === undefined || host === '') return ambiguous('Host');
  if (coding !== undefined && (length !== undefined || httpVersion !== '1.1')) return ambiguous('Transfer-Encoding');
  const target = readTarget(incoming, host);
  if (target === undefined) return ambiguous('request target');

  headers[1] = host;
  appendOurs(headers, forwarding, { forwardedFor, via: `${via}${httpVersion} ${pseudonym}` });
  const bytes = Number(length ?? 0);
  if (coding === undefined && bytes === 0 && length !== undefined) headers.push('Content-Length', '0');
  return { method, target, headers, framing: coding !== undefined ? 'chunked' : bytes || 'none', expectsContinue };
}

interface Chain {
  readonly forwardedFor: string;
  readonly via: string;
}

function appendOurs(headers: string[], { incoming, externalUrl, identity }: Forwarding, chain: Chain): void {
  const { origin, prefix } = externalUrl;
  const scheme = origin.charCodeAt(4) === 0x3a ? 'http' : 'https';
  headers.push('Via', chain.via);
  headers.push('X-Forwarded-For', chain.forwardedFor + describePeer(incoming));
  headers.push('X-Forwarded-Proto', scheme);
  headers.push('X-Forwarded-Host', origin.slice(scheme.length + 3));
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
