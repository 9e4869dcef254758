import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TakeSocket } from '../http/exchange.ts';
import type { ClientConnection } from './client-connection.ts';

/** Called for a request for a WebSocket: it responds, or takes the connection. */
export type UpgradeListener = (incoming: IncomingMessage, outgoing: ServerResponse, take: TakeSocket) => void;

interface TunnelLimits {
  /** Seconds until a connection is closed whose peer takes no byte. */
  readonly unreadTimeout: number;
  /** Seconds until an idle tunnel is closed. */
  readonly tunnelTimeout: number;
}

interface UpgradeOptions extends TunnelLimits {
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

/** Checks of the sockets within the shorter limit. */
const checksPerLimit = 4;

/**
 * Limits a connection that offers a WebSocket: until its tunnel exists as any request, then as a tunnel. Returns the function
 * that makes it one. Does not use the timer of the socket, which begins again with each byte that the peer sends.
 */
function limitUpgrade(
  { socket }: ClientConnection,
  head: Buffer,
  { unreadTimeout, tunnelTimeout }: TunnelLimits,
): TakeSocket {
  const period = Math.min(unreadTimeout, tunnelTimeout) / checksPerLimit;
  /** Creates a check: true once the number has been the same for the limit. NaN equals no number. */
  const createCheck = (limit: number, read: () => number): (() => boolean) => {
    let before = Number.NaN;
    let seconds = 0;
    return () => {
      const now = read();
      seconds = now === before ? seconds + period : 0;
      before = now;
      return seconds >= limit;
    };
  };
  const checkUnread = (each: Socket): (() => boolean) =>
    createCheck(unreadTimeout, () =>
      each.writableLength === 0 ? Number.NaN : each.bytesWritten - each.writableLength,
    );
  const checks = [checkUnread(socket)];
  const timer = setInterval(() => {
    if (checks.some((isOver) => isOver())) socket.destroy();
  }, period * 1000);
  socket.once('close', () => clearInterval(timer));
  // Reads, because only a read shows the client's end. A client that sends before the tunnel exists is read once.
  const hold = (chunk: Buffer): void => {
    socket.pause();
    socket.unshift(chunk);
  };
  const cancel = (): void => void socket.destroy();
  socket.setTimeout(0);
  socket.once('data', hold).once('end', cancel).resume();
  return (upstream) => {
    socket.off('data', hold).off('end', cancel).pause();
    checks.push(
      checkUnread(upstream),
      createCheck(tunnelTimeout, () => socket.bytesRead + socket.bytesWritten),
    );
    return { socket, head };
  };
}
