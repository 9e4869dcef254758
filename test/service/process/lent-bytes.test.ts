import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { type AddressInfo, connect, createServer as createNetServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { errorBodyFormats } from '../../../src/refusal/error-body.ts';
import { createHttpServer, type HttpServer, type UpgradeListener } from '../../../src/service/process/http-server.ts';
import { findTaker, lendBytes } from '../../../src/service/process/lent-bytes.ts';
import { stopAccepting } from '../../../src/service/process/listener.ts';

interface Opened {
  readonly fronts: Server[];
  readonly servers: HttpServer[];
  readonly sockets: Socket[];
}
const opened: Opened = { fronts: [], servers: [], sockets: [] };
afterEach(async () => {
  for (const socket of opened.sockets.splice(0)) socket.destroy();
  for (const front of opened.fronts.splice(0)) front.close();
  for (const http of opened.servers.splice(0)) {
    await stopAccepting(http.server);
    await http.finish(0);
  }
});

async function open(onRequest: RequestListener, onUpgrade: UpgradeListener = () => {}) {
  const http = createHttpServer({ keepAlive: 60, errorBody: errorBodyFormats.detail, onRequest, onUpgrade });
  opened.servers.push(http);
  http.server.listen(0, '127.0.0.1');
  await once(http.server, 'listening');
  return { http, port: (http.server.address() as AddressInfo).port }; // it listens on TCP
}

/** Accepts for a server, as the primary process does for its workers; the port. */
async function acceptFor(http: HttpServer): Promise<number> {
  const front = createNetServer({ pauseOnConnect: true }, http.take).listen(0, '127.0.0.1');
  opened.fronts.push(front);
  await once(front, 'listening');
  return (front.address() as AddressInfo).port; // it listens on TCP
}

async function call(port: number): Promise<Socket & { received: Buffer }> {
  const socket = Object.assign(connect(port, '127.0.0.1'), { received: Buffer.alloc(0) });
  opened.sockets.push(socket);
  socket.on('data', (chunk: Buffer) => {
    socket.received = Buffer.concat([socket.received, chunk]);
  });
  await once(socket, 'connect');
  return socket;
}

async function receive(socket: Socket & { readonly received: Buffer }, isEnough: (all: Buffer) => boolean) {
  while (!isEnough(socket.received)) await once(socket, 'data');
  return socket.received;
}

const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** Keeps every chunk as it came, and puts them together only at the end. */
async function collect(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer); // no encoding is set
  await sleep(20);
  return Buffer.concat(chunks);
}

describe('one buffer for what all connections read', () => {
  it('is one: what two connections send comes to the same place', async () => {
    const server = createServer();
    const places: ArrayBufferLike[] = [];
    server.on(lendBytes(server), (socket: Socket) => {
      socket.on('data', () => places.push(new ArrayBuffer()));
      const taker = findTaker(socket);
      if (taker !== undefined) taker.take = (bytes) => places.push(bytes.buffer) > 0;
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo; // it listens on TCP
    for (const text of ['one', 'two']) (await call(port)).write(text);
    for (let i = 0; i < 200 && places.length < 2; i++) await sleep(10);
    expect(places).toHaveLength(2);
    expect(places[0]).toBe(places[1]);
    server.closeAllConnections();
    server.close();
  });

  it.each(['the server itself', 'another, as for a worker'])(
    'bodies that come in turns are not mixed, however long they are kept; accepted by %s',
    async (by) => {
      const { http, port: own } = await open(async (incoming, outgoing) => outgoing.end(hash(await collect(incoming))));
      const port = by === 'the server itself' ? own : await acceptFor(http);
      const bodies = Array.from({ length: 6 }, () => randomBytes(200_000));
      const sockets = await Promise.all(bodies.map(() => call(port)));
      for (const socket of sockets) socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n');
      for (let at = 0; at < 200_000; at += 10_000) {
        for (const [i, socket] of sockets.entries()) socket.write(bodies[i]?.subarray(at, at + 10_000) ?? '');
        await sleep(1);
      }
      const answers = await Promise.all(
        sockets.map((socket) => receive(socket, (all) => /[\da-f]{64}$/.test(all.toString('latin1')))),
      );
      expect(answers.map((answer) => /[\da-f]{64}/.exec(answer.toString())?.[0])).toEqual(bodies.map(hash));
    },
  );

  it('requests that wait behind others are answered as they were sent', async () => {
    const waiting: (() => void)[] = [];
    const { port } = await open((incoming, outgoing) => void waiting.push(() => outgoing.end(incoming.url)));
    const sockets = await Promise.all([0, 1, 2].map(() => call(port)));
    const targets = sockets.map((_, i) => Array.from({ length: 300 }, (_entry, n) => `/${i}-${n}`));
    for (const [i, socket] of sockets.entries()) {
      socket.write((targets[i] ?? []).map((target) => `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''));
    }
    const read = (all: Buffer): string[] => all.toString().match(/^\/\d-\d+/gm) ?? [];
    const done = Promise.all(sockets.map((socket) => receive(socket, (all) => read(all).length === 300)));
    const answering = setInterval(() => {
      for (const answer of waiting.splice(0)) answer();
    }, 5);
    const received = await done;
    clearInterval(answering);
    expect(received.map(read)).toEqual(targets);
  });

  it('what comes behind an upgrade is kept until the connection is taken, and all of it arrives', async () => {
    const sent = randomBytes(3_000_000);
    const { port } = await open(
      (_incoming, outgoing) => outgoing.end(),
      async (_incoming, _outgoing, take) => {
        await sleep(50);
        const { socket, head } = take();
        const chunks = [head];
        socket.on('data', (chunk: Buffer) => {
          chunks.push(chunk);
          // A reader that stops now and then.
          if (chunks.length % 10 === 0) {
            socket.pause();
            setTimeout(() => socket.resume(), 5);
          }
          const all = Buffer.concat(chunks);
          if (all.length === sent.length) setTimeout(() => socket.end(hash(Buffer.concat(chunks))), 20);
        });
      },
    );
    const socket = await call(port);
    const request = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n';
    socket.write(Buffer.concat([Buffer.from(request), sent.subarray(0, 5000)]));
    // What others send comes to the same place meanwhile.
    const other = await call(port);
    const asking = setInterval(() => other.write(`GET /${'z'.repeat(15_000)} HTTP/1.1\r\nHost: a\r\n\r\n`), 1);
    await sleep(60);
    socket.write(sent.subarray(5000));
    const answer = await receive(socket, (all) => all.length >= 64);
    clearInterval(asking);
    expect(answer.toString()).toBe(hash(sent));
  });

  it('a connection that has closed is counted no more', async () => {
    const { http, port } = await open((_incoming, outgoing) => outgoing.end());
    const count = promisify(http.server.getConnections.bind(http.server));
    const [first, second] = [await call(port), await call(port)];
    first.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await receive(first, (all) => all.length > 0);
    expect(await count()).toBe(2);
    first.destroy();
    second.destroy();
    for (let i = 0; i < 200 && (await count()) > 0; i++) await sleep(10);
    expect(await count()).toBe(0);
  });
});
