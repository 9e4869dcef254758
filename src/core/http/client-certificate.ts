import { hash, X509Certificate } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { attempt } from '../attempt.ts';
import { refuseOnWorkerd } from '../platform.ts';
import { Refused } from '../refused.ts';
import { parseTrust, type Trust, trustsAll } from './external-url.ts';
import type { Connection, ResourceRequest } from './request.ts';

/** Source of client certificates: the TLS connection, or the `Client-Cert` header (RFC 9440) of a trusted proxy. */
export type ClientCertificateSource = 'tls' | 'header';

/** Finds the thumbprint (`x5t#S256`, RFC 8705 §3.1) of a certificate. Refuses a header of a trusted proxy without one. */
type ReadClientCertificate = (request: ResourceRequest, connection?: Connection) => string | Refused | undefined;

/** Maximum length of the header: a certificate has a few KiB. */
const maxHeaderLength = 16_384;
/** A proxy repeats the certificates of few clients at a time. */
const keptThumbprints = 256;
// A byte sequence (RFC 9651 §3.3.5) in canonical base64. The separator of two joined header lines is not part of it.
const byteSequence = /^:((?:[A-Za-z\d+/]{4})+(?:[A-Za-z\d+/]{2}==|[A-Za-z\d+/]{3}=)?):$/;

/**
 * Creates the reader of client certificates. TLS has proven that the client holds the key; the header counts only from trusted
 * peers. Throws `TypeError` for a header without a trusted proxy, and for `tls` on Cloudflare Workers.
 */
export function createReadClientCertificate(source: ClientCertificateSource, trust: Trust): ReadClientCertificate {
  if (source === 'tls') return createReadFromTls();
  if (trust === 'none') {
    throw new TypeError('clientCertificate: header is believed only from trusted proxies; name them in trustProxy');
  }
  if (trustsAll(trust)) {
    throw new TypeError(
      'clientCertificate: anybody could write the header; name the addresses of your proxies in trustProxy',
    );
  }
  const isTrusted = parseTrust(trust);
  const thumbprints = new LRUCache<string, string>({ max: keptThumbprints });
  return (request, connection) => {
    if (!isTrusted(connection?.remoteAddress)) return undefined;
    const value = request.headers.get('client-cert');
    if (value === null) return undefined;
    const known = thumbprints.get(value);
    if (known !== undefined) return known;
    const thumbprint = parseHeader(value);
    if (typeof thumbprint === 'string') thumbprints.set(value, thumbprint);
    return thumbprint;
  };
}

function createReadFromTls(): ReadClientCertificate {
  refuseOnWorkerd('clientCertificate', 'which show no TLS connection; write header, where a proxy sends Client-Cert');
  const thumbprints = new WeakMap<Connection, string>();
  return (_request, connection) => {
    if (connection?.getPeerCertificate === undefined) return undefined;
    const known = thumbprints.get(connection);
    if (known !== undefined) return known;
    // Empty where the client has none, `null` where the connection is gone.
    const raw = connection.getPeerCertificate()?.raw;
    if (raw === undefined) return undefined;
    const thumbprint = hash('sha256', raw, 'base64url');
    thumbprints.set(connection, thumbprint);
    return thumbprint;
  };
}

function parseHeader(value: string): string | Refused {
  const certificate = value.length > maxHeaderLength ? undefined : decode(byteSequence.exec(value)?.[1]);
  if (certificate === undefined) return new Refused('bad_forwarded_header', { context: { header: 'Client-Cert' } });
  return hash('sha256', certificate, 'base64url');
}

/** The bytes of one certificate in DER, and nothing behind it. */
function decode(text: string | undefined): Buffer | undefined {
  if (text === undefined) return undefined;
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text) return undefined; // stray bits in the last character
  return attempt(() => new X509Certificate(bytes).raw.equals(bytes)) === true ? bytes : undefined;
}
