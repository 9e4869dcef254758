// The upstream of the proxies: prepared bytes over a raw socket.
import { createServer } from 'node:net';

const { PORT } = process.env;
const body = JSON.stringify({
  message: 'The response of an upstream, somewhat longer than nothing.',
  items: [1, 2, 3],
});
const answer = Buffer.from(
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Sun, 22 Nov 2026 12:00:00 GMT\r\nETag: "bench"\r\nConnection: keep-alive\r\nKeep-Alive: timeout=60\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
);

createServer({ noDelay: true }, (socket) => {
  socket.on('error', () => socket.destroy());
  socket.on('data', () => socket.write(answer));
}).listen(Number(PORT), '127.0.0.1');
