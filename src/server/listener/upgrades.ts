import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TakeSocket } from '../http/exchange.ts';
import type { ClientConnection } from './client-connection.ts';
import { limitUpgrade, type TunnelLimits } from './tunnels.ts';

/** Called for a request for a WebSocket: it responds, or takes the connection. */
export type UpgradeListener = (incoming: IncomingMessage, outgoing: ServerResponse, take: TakeSocket) => void;

export interface UpgradeOptions extends TunnelLimits {
  readonly onUpgrade: UpgradeListener;
  /** Serves a connection from its next request on. */
  readonly serveAgain: (socket: Socket) => void;
}

/** Reports whether a request offers a WebSocket. Every other upgrade is ignored (RFC 9110 §7.8). */
export function offersWebSocket({ method, httpVersion, headers }: IncomingMessage): boolean {
  const hasBody = Number(headers['content-length'] ?? 0) !== 0 || headers['transfer-encoding'] !== undefined;
  return method === 'GET' && httpVersion === '1.1' && !hasBody && headers.upgrade?.toLowerCase() === 'websocket';
}

/** Serves requests for an upgrade. Node detaches its parser from their connections. */
export function serveUpgrades(server: Server, options: UpgradeOptions): void {
  const { onUpgrade, serveAgain } = options;
  server.on('upgrade', (incoming, _duplex, head) => {
    const connection = incoming.socket as unknown as ClientConnection; // the server has no other connections
    if (connection.destroyed) return;
    connection.detach();
    // A view of the bytes that Node has read: the copy does not keep all of them.
    const rest = Buffer.from(head);
    // Before version 24.9 Node does not call `shouldUpgradeCallback`. The request is parsed again, without its offer.
    if (!offersWebSocket(incoming))
      return void serveAgain(connection.leave(Buffer.concat([formatHead(incoming), rest])));
    const outgoing = createUpgradeAnswer(incoming, connection);
    const take = limitUpgrade(connection, rest, options);
    onUpgrade(incoming, outgoing, (upstream) => {
      outgoing.detachSocket(connection as unknown as Socket); // the assigned socket
      return take(upstream);
    });
  });
}

function formatHead({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  let text = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== 'upgrade') text += `${rawHeaders[i]}: ${rawHeaders[i + 1]}\r\n`;
  }
  return Buffer.from(`${text}\r\n`, 'latin1');
}

/** Creates the response for a request for an upgrade: Node provides only the connection. */
function createUpgradeAnswer(incoming: IncomingMessage, connection: ClientConnection): ServerResponse {
  const outgoing = new ServerResponse(incoming);
  outgoing.shouldKeepAlive = false;
  outgoing.assignSocket(connection as unknown as Socket); // all that a response needs of one
  const drain = (): void => {
    outgoing.emit('drain');
  };
  const close = (): void => {
    connection.off('drain', drain).off('close', close);
    // Node does this for the responses that it creates.
    if (!outgoing.closed) outgoing.emit('close');
  };
  connection.on('drain', drain).once('close', close);
  connection.on('error', () => connection.destroy());
  outgoing.once('finish', () => {
    connection.destroySoon();
    close();
  });
  return outgoing;
}
