// Heads without end, bodies that the upstream does not read, and authenticated connections, at the gate as the proxy.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { holdsWithin } from '../shared/network.js';
import { openGate } from './gate.js';

/** MiB that a flood of 103 may cost. */
const floodMemory = 8;
const hints = Buffer.from('HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n'.repeat(1000));

/** An upstream sends 103 without end to a client that does not read. */
const flood = {
  name: 'gate-hints-unread',
  title: ({ quick }) => `${quick ? 64 : 256} MiB of 103 responses to a client that does not read`,
  async open(bench) {
    const flow = { bytes: 0, most: 0 };
    const upstream = createServer((incoming, outgoing) => {
      if (incoming.url !== '/report') return void outgoing.end('{}');
      const { socket } = incoming;
      const write = () => {
        while (!socket.destroyed && flow.bytes < flow.most && socket.write(hints)) flow.bytes += hints.length;
      };
      socket.on('drain', write);
      write();
    });
    return { ...(await openGate(bench, 'hints', { upstream })), flow };
  },
  async play(scene) {
    const { flow } = scene.setup;
    /** Requests a flood. Resolves with the highest memory until the gate has taken it. */
    const request = async (mebibytes, read) => {
      Object.assign(flow, { bytes: 0, most: mebibytes * 2 ** 20 });
      const socket = scene.connect();
      if (read) socket.resume();
      else socket.pause();
      socket.write('GET /report HTTP/1.1\r\nHost: a\r\n\r\n');
      let most = 0;
      const isTaken = await holdsWithin(120, () => {
        most = Math.max(most, scene.service.memory());
        return flow.bytes >= flow.most;
      });
      scene.demand(isTaken, `only ${flow.bytes} bytes were taken from the upstream`);
      socket.destroy();
      return most;
    };
    // Without load, because its heap varies by more. First to a client that reads, until the heap has found its size.
    const before = await request(128, true);
    const rise = (await request(scene.pace(256, 64), false)) - before;
    scene.demand(rise <= floodMemory, `the flood cost ${rise.toFixed(1)} MiB`);
    scene.note(
      `${(flow.bytes / 2 ** 20).toFixed(0)} MiB cost at most ${Math.max(0, rise).toFixed(1)} MiB more than a flood to a client that reads`,
    );
    await scene.begin({ share: 0.1 });
    await request(scene.pace(64, 16), false);
    scene.faultEnds();
  },
};

/** More clients of one address than its share authenticate connections; each response names the user of the connection. */
const authenticated = {
  name: 'gate-own-connections',
  title: ({ quick }) => `${quick ? 300 : 2_000} clients of one address authenticate their connection to the upstream`,
  async open(bench) {
    const sockets = new Set();
    const users = new WeakMap();
    const upstream = createServer((incoming, outgoing) => {
      const { socket, headers } = incoming;
      if (headers.authorization?.startsWith('NTLM') && !sockets.has(socket)) {
        sockets.add(socket);
        socket.on('close', () => sockets.delete(socket));
      }
      if (!users.has(socket)) users.set(socket, headers.authorization ?? 'nobody');
      outgoing.end(incoming.url === '/report' ? users.get(socket) : '{}');
    });
    const gate = await openGate(bench, 'own', { upstream });
    return { ...gate, environment: { ...gate.environment, PEER_SHARE: '0.02' }, sockets };
  },
  async play(scene) {
    const most = Math.floor(4096 * 0.02);
    await scene.begin({ share: 0.1 });
    const clients = [];
    let wrong = 0;
    let open = 0;
    const ask = async (socket, line) => {
      socket.write(`GET /report HTTP/1.1\r\nHost: a\r\n${line}\r\n`);
      const [chunk] = await once(socket, 'data');
      return String(chunk).split('\r\n\r\n')[1];
    };
    for (let i = 0; i < scene.pace(2000, 300); i++) {
      const socket = scene.connect();
      clients.push(socket);
      if ((await ask(socket, `Authorization: NTLM ${i}\r\n`)) !== `NTLM ${i}`) wrong++;
      const stranger = scene.connect();
      if ((await ask(stranger, '')) !== 'nobody') wrong++;
      stranger.destroy();
      open = Math.max(open, scene.setup.sockets.size);
      // As many as the limit on connections of one peer allows.
      if (clients.length > most + 20) clients.shift()?.destroy();
    }
    scene.demand(wrong === 0, `${wrong} responses were for another client's user`);
    scene.demand(open <= most + 1, `${open} connections, where the share of a peer is ${most}`);
    for (const socket of clients) socket.destroy();
    const areClosed = await holdsWithin(10, () => scene.setup.sockets.size === 0);
    scene.demand(areClosed, 'connections are open after their clients have closed');
    scene.note(`at most ${open} connections were open; no client was served as another one's user`);
    scene.faultEnds();
  },
};

/** MiB that a body of 300 MB may cost. */
const bodyMemory = 24;
const bodyBytes = 300_000_000;

/** An upstream that reads no body, of a known length and in chunks. */
const unreadBodies = {
  name: 'gate-bodies-unread',
  title: 'bodies of 300 MB for an upstream that does not read them',
  open: (bench) =>
    openGate(bench, 'bodies', {
      upstream: createServer((incoming, outgoing) => incoming.url === '/report' || outgoing.end('{}')),
    }),
  async play(scene) {
    const part = Buffer.alloc(1_000_000, 0x61);
    const length = `Content-Length: ${bodyBytes}`;
    // Without load, because its heap varies by more. The first one only loads the code.
    for (const [index, framing] of [length, length, 'Transfer-Encoding: chunked'].entries()) {
      const before = scene.service.memory();
      const socket = scene.connect();
      const chunk = framing.startsWith('T') ? `${bodyBytes.toString(16)}\r\n` : '';
      socket.write(`POST /report HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n${chunk}`);
      let most = 0;
      for (let tenths = 0; tenths < 30; tenths++) {
        while (socket.writableLength < 16 * part.length) socket.write(part);
        await sleep(100);
        most = Math.max(most, scene.service.memory() - before);
      }
      scene.demand(index === 0 || most <= bodyMemory, `${framing}: ${most.toFixed(0)} MiB`);
      socket.destroy();
    }
    await scene.begin({ share: 0.1 });
    await scene.sleep(1);
    scene.faultEnds();
  },
};

/** Rows of heads, bodies and authenticated connections. */
export const headRows = [flood, authenticated, unreadBodies];
