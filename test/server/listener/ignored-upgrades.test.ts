import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { errorBodyFormats } from '../../../src/core/refusal/error-body.ts';
import { type Listener, listen } from '../../../src/server/listener/listener.ts';

const opened: { readonly listeners: Listener[]; readonly sockets: Socket[] } = { listeners: [], sockets: [] };
afterEach(async () => {
  for (const socket of opened.sockets.splice(0)) socket.destroy();
  for (const listener of opened.listeners.splice(0)) await listener.close(0);
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

async function open(kind: 'service' | 'proxy'): Promise<Socket> {
  const listener = await listen({
    ...{ onRequest: echo, host: '127.0.0.1', port: 0, keepAlive: 5, errorBody: errorBodyFormats.detail },
    ...(kind === 'proxy' && { onUpgrade: (_incoming, outgoing) => void outgoing.writeHead(401).end('<401>') }),
  });
  opened.listeners.push(listener);
  const socket = connect(Number(new URL(listener.url).port), '127.0.0.1').setEncoding('latin1');
  opened.sockets.push(socket.on('error', () => {}));
  await once(socket, 'connect');
  return socket;
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
      const socket = (await open(row.kind)).setNoDelay(true);
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
