// The process with thousands of connections: idle after one request, slow within the headers of one, waiting after a
// part of its head, or with many requests whose responses are not read.
import { connect } from 'node:net';
import { serveRequests } from '../shared/processes.js';

const path = '/api/public';
const width = 100;
const dripMilliseconds = 1000;
/** Loopback addresses of the clients: one address may have a quarter of the connections (`PEER_SHARE`). */
const addresses = Array.from({ length: 8 }, (_, i) => `127.0.0.${i + 2}`);

const styles = {
  idle: { first: (host) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`, next: undefined },
  // One read of the service, and no look at what comes back.
  pipelining: {
    first: (host) => fillRead(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
    next: undefined,
    reads: false,
    isOnePeer: true,
  },
  waiting: {
    first: (host, { bytes, line = 'a' }) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nX-Part: `.padEnd(bytes, line),
    next: undefined,
  },
  slow: { first: (host) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nX-Slow: `, next: 'a' },
};

/** Repeats the request to the size of one read of the kernel. */
function fillRead(request) {
  return request.repeat(Math.floor(65_536 / request.length));
}

const sockets = new Set();
const statuses = {};
let opened = 0;
let failed = 0;

/** Opens so many connections, a hundred at a time; resolves when all are open, or could not be opened. */
async function open({ port, count, style, ...part }) {
  const { first, next, reads = true, isOnePeer = false } = styles[style];
  let left = count;
  const openInTurn = async () => {
    while (left-- > 0) {
      const localAddress = isOnePeer ? undefined : addresses[left % addresses.length];
      await openOne({ port, localAddress }, { bytes: first(`127.0.0.1:${port}`, part), reads });
    }
  };
  if (next !== undefined) {
    setInterval(() => {
      for (const socket of sockets) socket.write(next);
    }, dripMilliseconds);
  }
  await Promise.all(Array.from({ length: width }, openInTurn));
  return state();
}

function openOne(place, { bytes, reads }) {
  return /** @type {Promise<void>} */ (
    new Promise((resolve) => {
      const socket = connect({ ...place, host: '127.0.0.1' });
      socket.on('connect', () => {
        opened++;
        sockets.add(socket);
        socket.write(bytes);
        resolve();
      });
      if (!reads) socket.pause();
      else
        socket.on('data', (chunk) => {
          const status = /^HTTP\/1\.1 (\d{3}) /.exec(chunk.toString('latin1', 0, 13))?.[1];
          if (status !== undefined) statuses[status] = (statuses[status] ?? 0) + 1;
        });
      socket.on('error', () => {});
      socket.on('close', () => {
        if (!sockets.delete(socket)) failed++;
        resolve();
      });
    })
  );
}

function state() {
  return { open: sockets.size, opened, failed, statuses };
}

serveRequests({ open, state });
