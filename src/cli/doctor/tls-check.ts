import { once } from 'node:events';
import { isIP } from 'node:net';
import { connect, type DetailedPeerCertificate } from 'node:tls';
import { bareHost, createProxyChoice } from '../../core/outbound/proxy-choice.ts';
import { createTunnels } from '../../core/outbound/tunnel.ts';
import { type DoctorContext, forEachIssuer } from './context.ts';
import type { Entry } from './deployments.ts';
import { type FindingName, ok, problem, skipped } from './finding.ts';
import { writeFix } from './provider-check.ts';

/** Codes of a port without TLS. */
export const plainCodes = /EPROTO|WRONG_VERSION|PACKET_LENGTH/;

const names: readonly (readonly [code: RegExp, name: FindingName])[] = [
  [plainCodes, 'plain_http'],
  [/ALTNAME|HOSTNAME/, 'certificate_name'],
  [/EXPIRED|NOT_YET_VALID/, 'certificate_expired'],
];

export const checkTls = forEachIssuer('tls', async function* (entry, contact, context) {
  const { address, error } = contact;
  const url = new URL(error?.url ?? address);
  if (error?.kind !== 'tls') {
    const isOpen = url.protocol === 'https:' && !/^(?:network|proxy)/.test(error?.kind ?? '');
    return yield isOpen
      ? ok('tls', `the certificate of ${url.host} is trusted`)
      : skipped('tls', 'there was no TLS connection: see provider');
  }
  const name = names.find(([code]) => code.test(error.detail ?? ''))?.[1] ?? 'certificate_untrusted';
  const file = name === 'certificate_untrusted' ? entry.trust.environment['NODE_EXTRA_CA_CERTS'] : undefined;
  const chain = name === 'plain_http' ? '' : await describeChain(url, entry, context).catch(() => '');
  yield problem(name, `${url.host}: ${error.message}${chain}`, {
    expected: file && `an authority in ${file}, or one that Node trusts`,
    fix: writeFix(entry, contact, error),
  });
});

/** Describes the chain of an untrusted server. The connection ends with the handshake and carries no data. */
async function describeChain(url: URL, { trust }: Entry, { timeoutSeconds }: DoctorContext): Promise<string> {
  const host = bareHost(url.hostname);
  const port = Number(url.port || 443);
  const timeout = timeoutSeconds * 1000;
  const proxy = createProxyChoice(trust.environment)(url.href)?.address;
  const tunnels = proxy === undefined ? undefined : await createTunnels(proxy, { timeout });
  const socket = connect({
    ...(tunnels === undefined ? { host, port } : { socket: await tunnels.open(host, port) }),
    ...(isIP(host) === 0 && { servername: host }),
    ...{ rejectUnauthorized: false, timeout },
  });
  socket.once('timeout', () => socket.destroy(new Error('no response in time')));
  await once(socket, 'secureConnect');
  const leaf = socket.getPeerCertificate(true);
  socket.destroy();
  const { subject, subjectaltname = `${subject.CN}`, valid_from: from, valid_to: to } = leaf;
  const { CN, O = 'unknown' } = findLast(leaf).issuer;
  // The names last: they may be many, and what is shown is cut.
  return `; its chain ends at "${CN ?? O}", and it is valid from ${from} to ${to}, for ${subjectaltname.replaceAll('DNS:', '')}`;
}

/** Finds the last certificate of a chain. A root is its own issuer. */
function findLast(leaf: DetailedPeerCertificate, depth = 0): DetailedPeerCertificate {
  const { issuerCertificate: next, fingerprint256 } = leaf;
  return next === undefined || next.fingerprint256 === fingerprint256 || depth > 9 ? leaf : findLast(next, depth + 1);
}
