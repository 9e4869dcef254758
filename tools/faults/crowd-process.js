// The process that holds thousands of connections: idle after one request, slow within the headers of one, or with many
// requests whose answers are not read.
import { connect } from 'node:net';

const path = '/api/public';
const width = 100;
const dripMilliseconds = 1000;

const styles = {
  idle: { first: (host) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`, next: undefined },
  // One read of the service, and no look at what comes back.
  pipelining: {
    first: (host) => fillRead(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
    next: undefined,
    reads: false,
  },
  slow: { first: (host) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nX-Slow: `, next: 'a' },
};

/** As many whole requests as fit into what the kernel hands over at once. */
function fillRead(request) {
  return request.repeat(Math.floor(65_536 / request.length));
}

const sockets = new Set();
const statuses = {};
let opened = 0;
let failed = 0;

/** Opens so many connections, a hundred at a time; resolves when all are open, or could not be opened. */
async function open({ port, count, style }) {
  const { first, next, reads = true } = styles[style];
  let left = count;
  const openInTurn = async () => {
    while (left-- > 0) await openOne(port, { bytes: first(`127.0.0.1:${port}`), reads });
  };
  if (next !== undefined) {
    setInterval(() => {
      for (const socket of sockets) socket.write(next);
    }, dripMilliseconds);
  }
  await Promise.all(Array.from({ length: width }, openInTurn));
  return state();
}

function openOne(port, { bytes, reads }) {
  return /** @type {Promise<void>} */ (
    new Promise((resolve) => {
      const socket = connect({ port, host: '127.0.0.1' });
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

const commands = { open, state };

process.on('message', async ({ id, command, detail }) => {
  process.send?.({ id, answer: await commands[command](detail) });
});
process.on('disconnect', () => process.exit(0));
