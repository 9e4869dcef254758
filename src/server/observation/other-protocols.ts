import type { Log } from './log.ts';

/** An error of the parser, with the bytes that it was given. */
export interface ParserError extends NodeJS.ErrnoException {
  readonly rawPacket?: Uint8Array;
}

const proxyFix =
  'Turn the PROXY protocol off at the load balancer. Addresses of clients are read from X-Forwarded-For of the peers in TRUST_PROXY.';
const tlsFix = 'This port is plain http. Correct the scheme at the client or proxy, or set TLS_CERT and TLS_KEY.';
/** Protocols that clients and load balancers use by mistake, by their first bytes or by the code of Node's error. */
const protocols: readonly (readonly [protocol: string, sign: string, fix: string])[] = [
  ['PROXY protocol', 'PROXY ', proxyFix],
  ['PROXY protocol', '\r\n\r\n\0\r\nQUIT\n', proxyFix],
  ['TLS', '\x16\x03', tlsFix],
  ['HTTP/2', 'HPE_PAUSED_H2_UPGRADE', 'Configure the proxy or client to use HTTP/1.1 for this port.'],
  ['HTTP without TLS', 'ERR_SSL_HTTP_REQUEST', 'This port has TLS. Correct the scheme at the client or proxy.'],
];

/** Creates a function that logs the first use of each protocol that this listener does not speak. */
export function createReportProtocol(log: Pick<Log, 'write'>) {
  const reported = new Set<string>();
  return ({ code, rawPacket }: ParserError, peer: string | undefined): void => {
    // Shorter than every code.
    const bytes = Buffer.from(rawPacket?.subarray(0, 16) ?? []).toString('latin1');
    const [protocol, , fix] = protocols.find(([, sign]) => bytes.startsWith(sign) || code === sign) ?? [];
    if (protocol === undefined || reported.has(protocol)) return;
    reported.add(protocol);
    log.write('warn', 'protocol_not_served', { protocol, peer, fix });
  };
}
