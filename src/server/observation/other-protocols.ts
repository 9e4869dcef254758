import type { Log } from './log.ts';

/** An error of the parser, with the bytes that it was given. */
export interface ParserError extends NodeJS.ErrnoException {
  readonly rawPacket?: Uint8Array;
}

const proxyFix =
  'Turn the PROXY protocol off at the load balancer. Addresses of clients are read from X-Forwarded-For of the peers in TRUST_PROXY.';
/** Protocols that clients and load balancers use by mistake, by their first bytes. */
const protocols: readonly (readonly [protocol: string, start: string, fix: string])[] = [
  ['PROXY protocol', 'PROXY ', proxyFix],
  ['PROXY protocol', '\r\n\r\n\0\r\nQUIT\n', proxyFix],
  [
    'TLS',
    '\x16\x03',
    'This port is plain http. Correct the scheme at the client or proxy, or set TLS_CERT and TLS_KEY.',
  ],
];
/** Protocols that Node names itself, by the code of its error. */
const named: ReadonlyMap<string | undefined, readonly [protocol: string, fix: string]> = new Map([
  ['HPE_PAUSED_H2_UPGRADE', ['HTTP/2', 'Configure the proxy or client to use HTTP/1.1 for this port.']],
  ['ERR_SSL_HTTP_REQUEST', ['HTTP without TLS', 'This port has TLS. Correct the scheme at the client or proxy.']],
]);

function findProtocol({ code, rawPacket }: ParserError): readonly [protocol: string, fix: string] | undefined {
  const bytes = Buffer.from(rawPacket?.subarray(0, 16) ?? []).toString('latin1');
  const found = protocols.find(([, start]) => bytes.startsWith(start));
  return found === undefined ? named.get(code) : [found[0], found[2]];
}

/** Creates a function that logs the first use of each protocol that this listener does not speak. */
export function createReportProtocol(log: Pick<Log, 'write'>) {
  const reported = new Set<string>();
  return (error: ParserError, peer: string | undefined): void => {
    const [protocol, fix] = findProtocol(error) ?? [];
    if (protocol === undefined || reported.has(protocol)) return;
    reported.add(protocol);
    log.write('warn', 'protocol_not_served', { protocol, peer, fix });
  };
}
