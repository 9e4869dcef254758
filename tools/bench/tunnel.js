// WebSocket throughput: bytes that come back through a proxy, a second. Frames are bytes to a proxy, so none are made.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const block = Buffer.alloc(16 * 1024, 'x');
const mebibyte = 2 ** 20;
/** Blocks in flight in each tunnel. */
const window = 16;

async function openTunnel(url, authorization) {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  socket.write(
    `GET / HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: ${authorization}\r\n\r\n`,
  );
  const [first] = await once(socket, 'data');
  if (!/^HTTP\/1\.1 101 /.test(String(first))) throw new Error(`no WebSocket: ${String(first).split('\r\n', 1)[0]}`);
  return socket;
}

/** MiB that came back: a second (`rate`), and in all. */
export async function measureTunnels({ url, authorization, tunnels, seconds }) {
  const sockets = await Promise.all(Array.from({ length: tunnels }, () => openTunnel(url, authorization)));
  let bytes = 0;
  for (const socket of sockets) {
    let owed = 0;
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      bytes += chunk.length;
      for (owed += chunk.length; owed >= block.length; owed -= block.length) socket.write(block);
    });
    for (let i = 0; i < window; i++) socket.write(block);
  }
  await sleep(300);
  const before = { bytes, at: performance.now() };
  await sleep(seconds * 1000);
  const rate = ((bytes - before.bytes) / (performance.now() - before.at) / mebibyte) * 1000;
  for (const socket of sockets) socket.destroy();
  return { rate, mebibytes: bytes / mebibyte };
}
