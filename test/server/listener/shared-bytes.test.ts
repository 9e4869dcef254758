import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { useListeners } from '../../support/raw-listeners.ts';

const { open, dial: connect } = useListeners();

async function dial(port: number): Promise<Socket & { received: Buffer }> {
  const socket = Object.assign(await connect(port, { noDelay: true }), { received: Buffer.alloc(0) });
  return socket.on('data', (chunk: Buffer) => {
    socket.received = Buffer.concat([socket.received, chunk]);
  });
}

async function receive(socket: Socket & { readonly received: Buffer }, isEnough: (all: Buffer) => boolean) {
  while (!isEnough(socket.received)) await once(socket, 'data');
  return socket.received;
}

const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** Reads a body. A chunk is copied, because its buffer may be overwritten once it was read (test/README.md). */
async function collect(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(Buffer.from(chunk as Buffer)); // no encoding is set
  return Buffer.concat(chunks);
}

describe('bytes of one connection', () => {
  it('the end of an upgrade head in its own read → the bytes after it are those that were sent', async () => {
    const follows = 'f'.repeat(3000);
    const secret = `Authorization: Bearer ${'s'.repeat(2000)}`;
    const heads: string[] = [];
    let takeIt = (): void => {};
    const isServed = new Promise<void>((resolve) => {
      takeIt = resolve;
    });
    const port = await open({
      onRequest: (_incoming, outgoing) => void outgoing.end('served'),
      onUpgrade: async (_incoming, _outgoing, take) => {
        await isServed;
        const { socket: taken, head } = take(new Socket());
        heads.push(String(head), String(taken.read() ?? ''));
        taken.end();
      },
    });
    const socket = await dial(port);
    const closed = once(socket, 'close');
    socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n');
    await sleep(50);
    socket.write(`\r\n${follows}`);
    await sleep(20);
    const other = await dial(port);
    other.write(`GET /other HTTP/1.1\r\nHost: a\r\n${secret}\r\n\r\n`);
    await receive(other, (all) => all.includes('served'));
    takeIt();
    await closed;
    expect(heads.join('')).toBe(follows);
  });

  it('bodies that arrive in turns → not mixed', async () => {
    const port = await open({ onRequest: async (incoming, outgoing) => outgoing.end(hash(await collect(incoming))) });
    const bodies = Array.from({ length: 6 }, () => randomBytes(200_000));
    const sockets = await Promise.all(bodies.map(() => dial(port)));
    for (const socket of sockets) socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n');
    for (let at = 0; at < 200_000; at += 10_000) {
      for (const [i, socket] of sockets.entries()) socket.write(bodies[i]?.subarray(at, at + 10_000) ?? '');
      await sleep(1);
    }
    const responses = await Promise.all(
      sockets.map((socket) => receive(socket, (all) => /[\da-f]{64}$/.test(all.toString('latin1')))),
    );
    expect(responses.map((response) => /[\da-f]{64}/.exec(response.toString())?.[0])).toEqual(bodies.map(hash));
  });

  it('bytes that follow an upgrade → kept until the connection is taken, and all of them arrive', async () => {
    const sent = randomBytes(3_000_000);
    const port = await open({
      onRequest: (_incoming, outgoing) => void outgoing.end(),
      onUpgrade: async (_incoming, _outgoing, take) => {
        await sleep(50);
        const { socket, head } = take(new Socket());
        const chunks = [head];
        socket.on('data', (chunk: Buffer) => {
          chunks.push(Buffer.from(chunk));
          if (chunks.length % 10 === 0) {
            socket.pause();
            setTimeout(() => socket.resume(), 5);
          }
          const all = Buffer.concat(chunks);
          if (all.length === sent.length) setTimeout(() => socket.end(hash(Buffer.concat(chunks))), 20);
        });
        socket.resume();
      },
    });
    const socket = await dial(port);
    const request = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
    socket.write(Buffer.concat([Buffer.from(request), sent.subarray(0, 5000)]));
    const other = await dial(port);
    for (let at = 5000; at < sent.length; at += 50_000) {
      socket.write(sent.subarray(at, at + 50_000));
      other.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
      await sleep(1);
    }
    expect((await receive(socket, (all) => all.length === 64)).toString()).toBe(hash(sent));
  });

  it('h2c with pipelined requests after it → the upgrade is ignored, and each request gets its response', async () => {
    const port = await open({
      onRequest: (incoming, outgoing) => void setTimeout(() => outgoing.end(`<${incoming.url}>`), 5),
      onUpgrade: () => {},
    });
    const socket = await dial(port);
    const h2c = (path: string): string =>
      `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n`;
    const plain = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
    socket.write(plain('/0') + h2c('/1') + plain('/2') + plain('/3') + h2c('/4') + plain('/5'));
    const targets = (all: Buffer): readonly string[] => all.toString().match(/<[^>]*>/g) ?? [];
    expect(targets(await receive(socket, (all) => targets(all).length === 6))).toEqual(
      [0, 1, 2, 3, 4, 5].map((i) => `</${i}>`),
    );
    socket.write(plain('/6'));
    await receive(socket, (all) => targets(all).length === 7);
  });

  it('a client that sends a body before it reads the response → both arrive, whatever is unsent', async () => {
    const port = await open({ onRequest: (incoming, outgoing) => void incoming.pipe(outgoing), onUpgrade: () => {} });
    const socket = await dial(port);
    const body = randomBytes(300_000);
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`);
    socket.write(body);
    await once(socket, 'end');
    expect(socket.received.length).toBeGreaterThan(body.length);
  });

  it.each([
    ['that ends its side', true],
    ['that does not', false],
  ])(
    'a malformed body with bytes behind it, from a client %s → 400, and the connection is closed',
    async (_name, ends) => {
      const closed: boolean[] = [];
      const port = await open({
        unreadTimeout: 1,
        onUpgrade: () => {},
        onRequest: (_incoming, outgoing) => void outgoing.on('close', () => closed.push(true)),
      });
      const socket = (await connect(port, { allowHalfOpen: !ends })).resume();
      const end = once(socket, 'end');
      socket.write(
        'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\nGET / HTTP/1.1\r\n\r\n',
      );
      await end;
      await expect.poll(() => closed).toEqual([true]);
    },
  );

  it('a malformed request after a pending one → 400 after the response, not instead of it', async () => {
    const malformed: number[] = [];
    const port = await open({
      onRequest: (_incoming, outgoing) => void setTimeout(() => outgoing.end('first'), 50),
      onMalformed: (status) => malformed.push(status),
    });
    const socket = await dial(port);
    socket.write(`GET / HTTP/1.1\r\nHost: a\r\n\r\n${'GET \x01 HTTP/1.1\r\n\r\n'.repeat(3)}`);
    await once(socket, 'end');
    expect(socket.received.toString().match(/HTTP\/1\.1 \d+|first/g)).toEqual([
      'HTTP/1.1 200',
      'first',
      'HTTP/1.1 400',
    ]);
  });
});
