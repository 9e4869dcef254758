// The upstream of the proxies: prepared bytes over a raw socket, and an echo after an upgrade.
import { createHash } from 'node:crypto';
import { createServer } from 'node:net';

const { PORT } = process.env;
const body = JSON.stringify({
  message: 'The response of an upstream, somewhat longer than nothing.',
  items: [1, 2, 3],
});
const answer = Buffer.from(
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Sun, 22 Nov 2026 12:00:00 GMT\r\nETag: "bench"\r\nConnection: keep-alive\r\nKeep-Alive: timeout=60\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
);
const webSocketId = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

createServer({ noDelay: true }, (socket) => {
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk) => {
    const key = /^sec-websocket-key: *(.+)\r$/im.exec(chunk.toString('latin1'))?.[1];
    if (key === undefined) {
      socket.write(answer);
      return;
    }
    const accept = createHash('sha1').update(`${key}${webSocketId}`).digest('base64');
    socket.removeAllListeners('data');
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    socket.pipe(socket);
  });
}).listen(Number(PORT), '127.0.0.1');
