import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext } from 'node:tls';
import type { UpstreamAddress } from '../../http/upstream-address.ts';

/** Opens a connection; its TLS handshake may still be in flight. */
export type OpenConnection = () => Socket;

/** TCP connections below TLS: only these can be reset. */
const carriers = new WeakMap<Socket, Socket>();

/** Creates the function that opens connections to one upstream; `ca` replaces the roots of Node. */
export function createOpenConnection(
  { isTls, hostname, port, socketPath }: UpstreamAddress,
  ca?: string,
): OpenConnection {
  const place = socketPath === undefined ? { host: hostname, port } : { path: socketPath };
  const options = { ...place, noDelay: true, keepAlive: true, highWaterMark: 64 * 1024 };
  if (!isTls) return () => connect(options);
  const secureContext = createSecureContext(ca === undefined ? {} : { ca });
  // The name in the certificate is the upstream's, not the Host of the client.
  const peer = isIP(hostname) === 0 ? { host: hostname, servername: hostname } : { host: hostname };
  let session: Buffer | undefined;
  return () => {
    const carrier = connect(options);
    const socket = connectTls({ ...peer, socket: carrier, secureContext, session, ALPNProtocols: ['http/1.1'] });
    socket.on('session', (latest) => {
      session = latest;
    });
    carriers.set(socket, carrier);
    return socket;
  };
}

/**
 * Reports whether a response has no body by definition (RFC 9112 §6.3). Its connection is closed: an upstream that sends a
 * body nevertheless may send it when the next client's request is already in flight, and no delay rules that out.
 */
export function endsConnection(method: string, status: number): boolean {
  return method === 'HEAD' || status === 204 || status === 304;
}

/**
 * Closes a connection with a reset. After an orderly close its local port stays unusable for a minute, and a client whose
 * requests close connections would use up the ports of all.
 */
export function resetConnection(socket: Socket): void {
  const carrier = carriers.get(socket) ?? socket;
  // A unix socket has no address, and cannot be reset.
  if (carrier.remoteAddress === undefined) socket.destroy();
  else carrier.resetAndDestroy();
}
