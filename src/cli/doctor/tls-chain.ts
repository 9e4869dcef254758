import { request } from 'node:http';
import type { Socket } from 'node:net';
import { connect, type DetailedPeerCertificate } from 'node:tls';
import { bareHost, type EgressProxy } from './requests.ts';

export interface TlsChain {
  /** Error code of OpenSSL; `undefined` if the chain is trusted. */
  readonly problem: string | undefined;
  readonly authority: string;
  readonly names: string;
  readonly validFrom: string;
  readonly validTo: string;
}

/**
 * Reads the chain of an untrusted server. The connection ends with the handshake and carries no data. Rejects without TLS.
 */
export async function readTlsChain(url: URL, proxy: EgressProxy | undefined, timeout: number): Promise<TlsChain> {
  const host = bareHost(url.hostname);
  const port = Number(url.port || 443);
  const tunnel = proxy === undefined ? undefined : await openTunnel(proxy.url, `${url.hostname}:${port}`, timeout);
  const target = tunnel === undefined ? { host, port } : { socket: tunnel };
  return new Promise((resolve, reject) => {
    const servername = /^[\d.]+$|:/.test(host) ? {} : { servername: host };
    const socket = connect({ ...target, ...servername, host, rejectUnauthorized: false, timeout }, () => {
      const chain = describeChain(socket.getPeerCertificate(true), socket.authorizationError);
      socket.destroy();
      resolve(chain);
    });
    socket.once('timeout', () => socket.destroy(new Error('no response in time')));
    socket.once('error', reject);
  });
}

function describeChain(leaf: DetailedPeerCertificate, problem: Error | string | undefined): TlsChain {
  let last = leaf;
  // A root is its own issuer.
  for (let depth = 0; depth < 10 && last.issuerCertificate !== undefined; depth++) {
    if (last.issuerCertificate.fingerprint256 === last.fingerprint256) break;
    last = last.issuerCertificate;
  }
  const { CN, O } = last.issuer ?? {};
  return {
    // Typed as Error; at run time it is a string.
    problem: problem ? String((problem as { readonly code?: unknown }).code ?? problem) : undefined,
    authority: String(CN ?? O ?? 'unknown'),
    names: leaf.subjectaltname ?? String(leaf.subject?.CN ?? 'none'),
    validFrom: leaf.valid_from,
    validTo: leaf.valid_to,
  };
}

function openTunnel(proxy: URL, path: string, timeout: number): Promise<Socket> {
  const credentials = proxy.username === '' ? '' : `${proxy.username}:${proxy.password}`;
  const headers =
    credentials === ''
      ? {}
      : { 'proxy-authorization': `Basic ${Buffer.from(decodeURIComponent(credentials)).toString('base64')}` };
  return new Promise((resolve, reject) => {
    request({ host: proxy.hostname, port: proxy.port || 80, method: 'CONNECT', path, headers, timeout })
      .once('connect', (_, socket) => resolve(socket))
      .once('error', reject)
      .end();
  });
}
