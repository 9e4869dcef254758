import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * An answer for a request that asks for an upgrade: Node hands out the bare connection. If nobody takes the connection,
 * the request is answered like any other, and the connection is closed after that.
 */
export function createUpgradeAnswer(incoming: IncomingMessage, socket: Socket): ServerResponse {
  const outgoing = new ServerResponse(incoming);
  outgoing.shouldKeepAlive = false;
  outgoing.assignSocket(socket);
  const drain = (): void => {
    outgoing.emit('drain');
  };
  socket.on('drain', drain);
  socket.on('error', () => socket.destroy());
  // What the client sends after its request belongs to a protocol that is not spoken.
  outgoing.once('finish', () => socket.end(() => socket.destroy()));
  socket.once('close', () => {
    socket.off('drain', drain);
    // Node does this for the answers that it makes.
    if (!outgoing.closed) outgoing.emit('close');
  });
  return outgoing;
}
