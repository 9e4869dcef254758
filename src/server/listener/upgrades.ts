import { type IncomingMessage, type RequestListener, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TakenSocket } from '../http/exchange.ts';
import type { ClientConnection } from './client-connection.ts';

/** Called for a request for a WebSocket: it responds, or takes the connection. */
export type UpgradeListener = (incoming: IncomingMessage, outgoing: ServerResponse, take: () => TakenSocket) => void;

export interface UpgradeOptions {
  readonly onUpgrade: UpgradeListener;
  /** Called for a request for any other protocol, which is ignored (RFC 9110 §7.8). */
  readonly onRequest: RequestListener;
  /** Serves what follows a request whose upgrade was ignored. */
  readonly serveAgain: (socket: Socket) => void;
  /** Seconds. */
  readonly unreadTimeout: number;
  /** Seconds. */
  readonly tunnelTimeout: number;
}

/** Serves requests for an upgrade. Node detaches its parser from their connections. */
export function serveUpgrades(server: Server, options: UpgradeOptions): void {
  const { onUpgrade, onRequest, serveAgain } = options;
  server.on('upgrade', (incoming, _duplex, head) => {
    // Not the stream of the event: from Node 26 on, one of Node's own if the request has a body that is still to come.
    const connection = incoming.socket as unknown as ClientConnection; // the server has no other connections
    if (connection.destroyed) return;
    connection.detach();
    const outgoing = createUpgradeAnswer(incoming, connection);
    // A view of the bytes that Node has read: the copy does not keep all of them.
    const rest = Buffer.from(head);
    if (incoming.headers.upgrade?.toLowerCase() === 'websocket') {
      connection.socket.setTimeout(0);
      outgoing.once('finish', () => connection.end(() => connection.destroy()));
      onUpgrade(incoming, outgoing, () => {
        outgoing.detachSocket(connection as unknown as Socket); // the assigned socket
        watchTunnel(connection.socket, options);
        return { socket: connection.socket, head: rest };
      });
      return;
    }
    const { connection: named, 'content-length': length, 'transfer-encoding': coding } = incoming.headers;
    const hasBody = length !== undefined || coding !== undefined; // of which Node before 26 does not find the end
    outgoing.shouldKeepAlive = incoming.httpVersion === '1.1' && !hasBody && !/\bclose\b/i.test(named ?? '');
    outgoing.once('finish', () => {
      if (outgoing.shouldKeepAlive) serveAgain(connection.leave(rest));
      else connection.end(() => connection.destroy());
    });
    onRequest(incoming, outgoing);
  });
}

/** Closes a tunnel that is idle for too long, or whose client takes no byte. */
function watchTunnel(socket: Socket, { unreadTimeout, tunnelTimeout }: UpgradeOptions): void {
  const period = Math.min(unreadTimeout / 2, tunnelTimeout) * 1000;
  let bytes = -1;
  let idle = 0;
  socket.setTimeout(period);
  socket.on('timeout', () => {
    const now = socket.bytesRead + socket.bytesWritten;
    idle = now === bytes ? idle + period : period;
    bytes = now;
    if (socket.writableLength > 0 || idle >= tunnelTimeout * 1000) socket.destroy();
    else socket.setTimeout(period);
  });
}

/** Creates the response for a request for an upgrade: Node provides only the connection. */
function createUpgradeAnswer(incoming: IncomingMessage, connection: ClientConnection): ServerResponse {
  const outgoing = new ServerResponse(incoming);
  outgoing.shouldKeepAlive = false;
  outgoing.assignSocket(connection as unknown as Socket); // all that a response needs of one
  const drain = (): void => {
    outgoing.emit('drain');
  };
  connection.on('drain', drain);
  connection.on('error', () => connection.destroy());
  connection.once('close', () => {
    connection.off('drain', drain);
    // Node does this for the responses that it creates.
    if (!outgoing.closed) outgoing.emit('close');
  });
  return outgoing;
}
