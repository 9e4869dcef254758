import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createIntake, type PeerOptions } from '../../../src/server/listener/intake.ts';
import { useListeners } from '../../support/raw-listeners.ts';

const { open: listen, dial } = useListeners();

async function open(peers: PeerOptions) {
  let refused = 0;
  const port = await listen({
    peers,
    limit: { most: 8, note: () => refused++ },
    onRequest: (_incoming, outgoing) => void outgoing.end('served'),
  });
  return { port, refused: () => refused };
}

let last: Socket;
/** Sends a request on a connection that stays open; returns true if it was served. */
async function isServed(port: number, localAddress: string): Promise<boolean> {
  last = await dial(port, { localAddress });
  last.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  const data = once(last, 'data').then(() => true);
  return Promise.race([data, once(last, 'close').then(() => false)]);
}

describe('connections of one address', () => {
  it('more than its part → closed and counted, and another address is served', async () => {
    const { port, refused } = await open({ share: 0.25 });
    const served = [];
    for (let i = 0; i < 4; i++) served.push(await isServed(port, '127.0.0.1'));
    expect(served).toEqual([true, true, false, false]);
    expect(refused()).toBe(2);
    expect(await isServed(port, '127.0.0.2')).toBe(true);
  });

  it('a connection that ends → the address may open another one', async () => {
    const { port } = await open({ share: 0.125 });
    expect(await isServed(port, '127.0.0.1')).toBe(true);
    const first = last;
    expect(await isServed(port, '127.0.0.1')).toBe(false);
    first.destroy();
    await expect.poll(() => isServed(port, '127.0.0.1')).toBe(true);
  });

  it('a trusted proxy in the /64 of clients → exempt, and the clients are not', () => {
    const intake = createIntake({ share: 0.5, isTrusted: (address) => address === '2001:db8::1' });
    for (const order of [
      ['2001:db8::1', '2001:db8::2'],
      ['2001:db8::2', '2001:db8::1'],
    ]) {
      const [first, second] = order.map((address) => intake.enter(address).isBounded);
      expect([first, second]).toEqual(order.map((address) => address === '2001:db8::2'));
      for (const address of order) intake.leave(address);
    }
    expect(intake.enter('2001:db8::3')).toBe(intake.enter('2001:db8::4'));
    expect(intake.enter('::ffff:192.0.2.1')).toBe(intake.enter('64:ff9b::c000:201'));
  });

  it.each([
    ['share 1', { share: 1 }],
    ['a trusted proxy', { share: 0.25, isTrusted: () => true }],
  ])('%s → only the limit of the process', async (_name, options) => {
    const { port } = await open(options);
    const served = [];
    for (let i = 0; i < 9; i++) served.push(await isServed(port, '127.0.0.1'));
    expect(served).toEqual([...Array<boolean>(8).fill(true), false]);
  });
});

/** Responds with the target, the body and the names of the headers that the app sees. */
const echo: RequestListener = (incoming, outgoing) => {
  let body = '';
  incoming.setEncoding('latin1').on('data', (text) => {
    body += text;
  });
  const respond = (): void =>
    void outgoing.end(`<${incoming.method} ${incoming.url} ${incoming.headers['x-name']} ${body}>`);
  // Since Node 24.10 the stream of a request without a body has ended before.
  if (incoming.readableEnded) respond();
  else incoming.on('end', respond);
};

async function connectTo(kind: 'service' | 'proxy'): Promise<Socket> {
  const port = await listen({
    onRequest: echo,
    ...(kind === 'proxy' && { onUpgrade: (_incoming, outgoing) => void outgoing.writeHead(401).end('<401>') }),
  });
  return (await dial(port, { noDelay: true })).setEncoding('latin1');
}

async function read(socket: Socket, count: number): Promise<readonly string[]> {
  let text = '';
  for await (const chunk of socket) {
    text += chunk;
    if (text.split('>').length > count) break;
  }
  return text.match(/<[^>]*>/g) ?? [];
}

const offers = {
  h2c: 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n',
  'TLS/1.2': 'Upgrade: TLS/1.2\r\nConnection: upgrade\r\n',
  'two lines': 'Connection: Upgrade\r\nUpgrade: h2c\r\nUPGRADE: TLS/1.2\r\n',
  'two protocols': 'Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n',
  'websocket, by POST or with a body': 'Connection: Upgrade\r\nUpgrade: websocket\r\n',
};
const bodies = {
  none: ['', ''],
  length: ['Content-Length: 17\r\n', 'GET /1 HTTP/1.1\r\n'],
  chunks: ['Transfer-Encoding: chunked\r\n', '11\r\nGET /1 HTTP/1.1\r\n\r\n0\r\n\r\n'],
} as const;
const cases = Object.keys(offers).flatMap((offer) =>
  Object.keys(bodies).flatMap((body) => (['service', 'proxy'] as const).map((kind) => ({ offer, body, kind }))),
);

describe('an upgrade that is not offered here', () => {
  it.each(cases)('$offer, body: $body, $kind → ignored, and the next request is served', async (row) => {
    const [head, body] = bodies[row.body as keyof typeof bodies];
    const offer = offers[row.offer as keyof typeof offers];
    const bytes = `POST /0 HTTP/1.1\r\nHost: a\r\nX-Name: \xe9\r\n${offer}${head}\r\n${body}`;
    const next = 'GET /2 HTTP/1.1\r\nHost: a\r\n\r\n';
    const text = row.body === 'none' ? '' : 'GET /1 HTTP/1.1\r\n';
    for (const size of [bytes.length, 7]) {
      const socket = await connectTo(row.kind);
      const all = Buffer.from(bytes + next + bytes, 'latin1');
      for (let at = 0; at < all.length; at += size) socket.write(all.subarray(at, at + size));
      expect(await read(socket, 3)).toEqual([
        `<POST /0 \u00c3\u00a9 ${text}>`,
        '<GET /2 undefined >',
        `<POST /0 \u00c3\u00a9 ${text}>`,
      ]);
    }
  });
});
