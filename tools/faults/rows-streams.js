// Tunnels, and event streams that end with their token, at the gate as the proxy.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { holdsWithin } from '../shared/network.js';
import { createUpstream, openGate, revoke } from './gate.js';

/** Milliseconds from the response to a cutoff until a stream that it refuses ends. */
const bound = 1000;
/** Seconds: 30 without a byte, the time between two checks, and a busy host. */
const unreadSeconds = 60;

const request = (token, lines = '') =>
  `GET /stream HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n${lines}\r\n`;
const offer =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';

/** Clients offer an upgrade, the upstream responds with 200 and a body without an end, and no client reads. */
const unread = {
  name: 'gate-upgrade-unread',
  title: ({ quick }) => `${quick ? 50 : 200} upgrades with an endless 200 in response, by clients that do not read`,
  async open(bench) {
    const flows = { open: 0, opened: 0, bytes: 0 };
    const upstream = createUpstream();
    upstream.on('upgrade', (_incoming, socket) => {
      flows.open++;
      flows.opened++;
      socket.on('close', () => flows.open--).on('error', () => {});
      socket.write('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n');
      const chunk = Buffer.alloc(64 * 1024);
      const write = () => {
        while (!socket.destroyed && socket.write(chunk)) flows.bytes += chunk.length;
      };
      socket.on('drain', write);
      write();
    });
    return { ...(await openGate(bench, 'unread', { upstream })), flows };
  },
  async play(scene) {
    const { flows } = scene.setup;
    await scene.begin({ share: 0.1 });
    const sockets = Array.from({ length: scene.pace(200, 50) }, () => {
      const socket = scene.connect();
      socket.pause();
      socket.write(request(scene.mint(), offer));
      return socket;
    });
    const startedAt = performance.now();
    const seconds = () => (performance.now() - startedAt) / 1000;
    const areOpen = await holdsWithin(30, () => flows.opened === sockets.length, 50);
    const openedAt = seconds();
    scene.demand(areOpen, `only ${flows.opened} offers reached the upstream`);
    const areClosed = await holdsWithin(unreadSeconds, () => flows.open === 0, 100);
    scene.demand(areClosed, `${flows.open} connections are still open after ${unreadSeconds} s`);
    scene.note(
      `closed ${(seconds() - openedAt).toFixed(0)} s after the last was opened; ${(flows.bytes / sockets.length / 2 ** 20).toFixed(1)} MiB of each body were taken, most by the kernel`,
    );
    scene.faultEnds();
    for (const socket of sockets) socket.destroy();
  },
};

/** Many open event streams, cutoffs of one session each, then of the client of all. */
const cutoffs = {
  name: 'gate-streams',
  title: ({ quick }) =>
    `${quick ? '1 000' : '4 000'} open event streams: 100 sessions are revoked, then the client of all`,
  open: (bench) =>
    openGate(bench, 'streams', {
      upstream: createServer((incoming, outgoing) => {
        if (incoming.url !== '/stream') return void outgoing.end('{}');
        outgoing.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
      }),
    }),
  async play(scene) {
    const count = scene.pace(4000, 1000);
    await scene.begin({ share: 0.1 });
    let open = 0;
    const streams = [];
    for (let i = 0; i < count; i++) {
      // Eight addresses: one has at most a quarter of the requests in flight.
      const socket = scene.connect({ localAddress: `127.0.0.${2 + (i % 8)}` });
      socket.write(request(scene.mint({ sid: `s${i}`, client_id: 'streams' })));
      const head = once(socket, 'data');
      // The last chunk; the connection stays open for another request.
      /** @type {Promise<void>} */
      const ended = new Promise((resolve) =>
        socket.on('data', (bytes) => bytes.toString('latin1').endsWith('0\r\n\r\n') && resolve()),
      );
      streams.push({ socket, ended: ended.then(() => void open--) });
      if (i % 50 === 49) await Promise.all([head, sleep(20)]);
    }
    await sleep(1000);
    open = count;
    const waits = [];
    for (let i = 0; i < 100; i++) {
      const [wait] = await Promise.all([
        cutOff(scene, { sid: `s${i}` }).then(() => performance.now()),
        Promise.race([streams[i]?.ended, sleep(5 * bound)]),
      ]);
      waits.push(performance.now() - wait);
    }
    scene.demand(open === count - 100, `${open} streams are open, not ${count - 100}`);
    scene.demand(Math.max(...waits) <= bound, `a stream ended ${Math.max(...waits).toFixed(0)} ms after its cutoff`);
    const took = await cutOff(scene, { client_id: 'streams' });
    const revokedAt = performance.now();
    await Promise.race([Promise.all(streams.map(({ ended }) => ended)), sleep(20 * bound)]);
    const all = performance.now() - revokedAt;
    scene.demand(open === 0, `${open} streams are still open`);
    scene.demand(all <= 2 * bound, `all streams ended ${all.toFixed(0)} ms after the cutoff`);
    scene.faultEnds();
    scene.note(
      `one session: at most ${Math.max(...waits).toFixed(0)} ms; the cutoff of all took ${took.toFixed(0)} ms, and the last of ${count - 100} streams ended ${all.toFixed(0)} ms later`,
    );
    for (const { socket } of streams) socket.destroy();
  },
};

/** Sets a cutoff. Resolves with the milliseconds that it took. */
async function cutOff(scene, cutoff) {
  const { status, took } = await revoke(scene, { before: Math.floor(Date.now() / 1000), ...cutoff });
  if (status !== 204) throw new Error(`/revocations responded with ${status}`);
  return took;
}

/** Rows of open streams. */
export const streamRows = [unread, cutoffs];
