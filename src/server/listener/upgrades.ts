import { type IncomingMessage, type RequestListener, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TakeSocket } from '../http/exchange.ts';
import type { ClientConnection } from './client-connection.ts';
import { limitUpgrade, type TunnelLimits } from './tunnels.ts';

/** Called for a request for a WebSocket: it responds, or takes the connection. */
export type UpgradeListener = (incoming: IncomingMessage, outgoing: ServerResponse, take: TakeSocket) => void;

export interface UpgradeOptions extends TunnelLimits {
  readonly onUpgrade: UpgradeListener;
  /** Called for a request for any other protocol, which is ignored (RFC 9110 §7.8). */
  readonly onRequest: RequestListener;
  /** Serves what follows a request whose upgrade was ignored. */
  readonly serveAgain: (socket: Socket) => void;
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
      const take = limitUpgrade(connection, rest, options);
      outgoing.once('finish', () => connection.end(() => connection.destroy()));
      onUpgrade(incoming, outgoing, (upstream) => {
        outgoing.detachSocket(connection as unknown as Socket); // the assigned socket
        return take(upstream);
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
