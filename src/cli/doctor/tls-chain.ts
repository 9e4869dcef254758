import { connect, type DetailedPeerCertificate } from 'node:tls';
import { bareHost } from '../../core/outbound/proxy-choice.ts';
import { createTunnels } from '../../core/outbound/tunnel.ts';

/**
 * Reads the chain of an untrusted server. The connection ends with the handshake and carries no data. Rejects without TLS.
 */
export async function readTlsChain(url: URL, proxy: string | undefined, timeout: number) {
  const host = bareHost(url.hostname);
  const port = Number(url.port || 443);
  const tunnels = proxy === undefined ? undefined : await createTunnels(proxy, { timeout });
  const target = tunnels === undefined ? { host, port } : { socket: await tunnels.open(host, port) };
  return new Promise<ReturnType<typeof describeChain>>((resolve, reject) => {
    const servername = /^[\d.]+$|:/.test(host) ? {} : { servername: host };
    const socket = connect({ ...target, ...servername, host, rejectUnauthorized: false, timeout }, () => {
      const chain = describeChain(socket.getPeerCertificate(true));
      socket.destroy();
      resolve(chain);
    });
    socket.once('timeout', () => socket.destroy(new Error('no response in time')));
    socket.once('error', reject);
  });
}

function describeChain(leaf: DetailedPeerCertificate) {
  let last = leaf;
  // A root is its own issuer.
  for (let depth = 0; depth < 10 && last.issuerCertificate !== undefined; depth++) {
    if (last.issuerCertificate.fingerprint256 === last.fingerprint256) break;
    last = last.issuerCertificate;
  }
  const { CN, O } = last.issuer ?? {};
  return {
    authority: String(CN ?? O ?? 'unknown'),
    names: leaf.subjectaltname ?? String(leaf.subject?.CN ?? 'none'),
    validFrom: leaf.valid_from,
    validTo: leaf.valid_to,
  };
}
