import { createServer, type Server } from 'node:http';
import { endAtExpiry, type ResourceServer } from 'portcullis';
import { toResourceRequest } from 'portcullis/node';
import { WebSocketServer } from 'ws';

/** Judges the upgrade: no socket is opened for a client that is refused. */
export function createChat(resourceServer: ResourceServer): Server {
  const policy = { scopes: ['chat'] };
  const sockets = new WebSocketServer({ noServer: true });
  const server = createServer();
  server.on('upgrade', async (incoming, socket, head) => {
    const request = toResourceRequest(incoming);
    try {
      const access = await resourceServer.authorize(request, policy, incoming.socket);
      sockets.handleUpgrade(incoming, socket, head, (opened) => {
        opened.send(`Hello ${access.claims.sub}`);
        // The token says how long: after that the client connects again.
        const cancel = endAtExpiry(access, () => opened.close(1008, 'The token has expired.'));
        opened.once('close', cancel);
      });
    } catch (error) {
      const context = { policy, connection: incoming.socket };
      const { status, headers } = resourceServer.describeRefusal(error, request, context);
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.end(`HTTP/1.1 ${status} Refused\r\n${lines.join('')}connection: close\r\ncontent-length: 0\r\n\r\n`);
    }
  });
  return server;
}
