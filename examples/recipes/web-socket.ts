import { createServer, type Server } from 'node:http';
import { endAtExpiry, type ResourceServer } from 'portcullis';
import { toUpgradeRequest } from 'portcullis/node';
import { WebSocketServer } from 'ws';

/** Authorizes the upgrade: a refused client gets no socket. */
export function createChat(resourceServer: ResourceServer): Server {
  const policy = { scopes: ['chat'] };
  const sockets = new WebSocketServer({
    noServer: true,
    // Browsers also offer `bearer` and the token: the response must not repeat them.
    handleProtocols: (offered) => offered.has('chat') && 'chat',
  });
  const server = createServer();
  server.on('upgrade', async (incoming, socket, head) => {
    // Node has no listener here any more: without this one, a client that disconnects ends the process.
    socket.on('error', () => socket.destroy());
    const request = toUpgradeRequest(incoming);
    try {
      const access = await resourceServer.authorize(request, policy, incoming.socket);
      sockets.handleUpgrade(incoming, socket, head, (opened) => {
        opened.on('error', () => opened.terminate()); // a malformed frame
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
