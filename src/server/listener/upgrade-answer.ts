import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ClientConnection } from './client-connection.ts';

/** Creates the response for a request for an upgrade: Node provides only the connection. */
export function createUpgradeAnswer(incoming: IncomingMessage, connection: ClientConnection): ServerResponse {
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
