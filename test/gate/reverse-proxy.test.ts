import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, request, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Server, Socket } from 'node:net';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { listen, stop } from '../../tools/shared/network.js';
import { useFolder } from '../support/folder.ts';
import { stall } from '../support/stall.ts';
import { createTestCertificates } from '../support/tls.ts';
import {
  answerHeads,
  areGone,
  flood,
  keep,
  ok,
  open,
  type Proxied,
  type ProxiedOptions,
  type Respond,
  sendRaw,
  sendRawFor,
  soon,
  stage,
  startProxied,
  startRawUpstream,
} from './proxied.ts';

/** An upstream of node:http. */
async function serve(listener: RequestListener, server: Server = createServer()): Promise<string> {
  server.on('request', listener).on('checkContinue', listener);
  keep({ close: () => stop(server) });
  return `127.0.0.1:${await listen(server)}`;
}
/** Responds with the method and the body. */
const echo: RequestListener = (incoming, outgoing) =>
  void text(incoming).then((body) => outgoing.end(`${incoming.method} ${body}`));

const get = (path = '/', more = ''): string => `GET ${path} HTTP/1.1\r\nHost: api.example\r\n${more}\r\n`;
const last = (path = '/', more = ''): string => get(path, `Connection: close\r\n${more}`);
const post = (body: string, more = ''): string =>
  `POST / HTTP/1.1\r\nHost: api.example\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`;
const lastPost = post('hello', 'Connection: close\r\n');
const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1]);
const bodyOf = (answer: string): string => answer.slice(answer.indexOf('\r\n\r\n') + 4);
/** Answers one head with these bytes, and closes where that is said. */
const answerWith =
  (bytes: string, end: 'keep' | 'close' = 'keep'): Respond =>
  (socket, arrived) => {
    if (!arrived.endsWith('\r\n\r\n')) return;
    socket.write(Buffer.from(bytes, 'latin1'));
    if (end === 'close') socket.end();
  };

describe('a request', () => {
  it('without a body → its line and headers arrive, and then ours', async () => {
    const identity = { names: ['X-Auth-Subject'], values: ['me'] };
    const { upstream, proxied } = await stage(answerHeads(), { identity });
    const answer = await sendRaw(proxied.port, last('/a?b', 'X_Auth_Subject: you\r\nAccept: */*\r\n'));
    expect(statusOf(answer)).toBe(200);
    expect(upstream.arrivals).toEqual([
      'GET /a?b HTTP/1.1\r\nhost: api.example\r\nconnection: keep-alive\r\nAccept: */*\r\nVia: 1.1 portcullis\r\n' +
        'X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: api.example\r\n' +
        'X-Request-Id: request-1\r\nX-Auth-Subject: me\r\n\r\n',
    ]);
  });

  it('with a body → arrives with the same length', async () => {
    const { upstream, proxied } = await stage((socket, arrived) => {
      if (arrived.endsWith('hello')) socket.write(ok);
    });
    expect(statusOf(await sendRaw(proxied.port, lastPost))).toBe(200);
    expect(upstream.arrivals[0]).toMatch(/\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello$/);
  });

  it.each(['Content-Length: 2000000', 'Content-Length: 2', 'Transfer-Encoding: chunked'])(
    'a head before its body, %s → arrives first, with the bytes of its values',
    async (length) => {
      const { upstream, proxied } = await stage(() => {});
      const client = open(proxied.port, `POST / HTTP/1.1\r\nHost: api.example\r\nX-Name: \xe9\r\n${length}\r\n\r\n`);
      await soon(() => expect(upstream.arrivals[0]).toMatch(/\r\nX-Name: \xe9\r\n[\s\S]*\r\n\r\n$/));
      client.destroy();
    },
  );

  it('a body with a length and Trailer → the body arrives, and no trailer is announced', async () => {
    const { upstream, proxied } = await stage((socket, arrived) => {
      if (arrived.endsWith('\r\n\r\nabc')) socket.write(ok);
    });
    const head = 'POST / HTTP/1.1\r\nHost: api.example\r\nTrailer: X-Sum\r\nContent-Length: 3\r\nConnection: close';
    expect(statusOf(await sendRaw(proxied.port, `${head}\r\n\r\nabc`))).toBe(200);
    expect(upstream.arrivals[0]).toMatch(/^POST (?!.*Trailer).*\r\n\r\nabc$/is);
  });

  it('HTTP/1.0 → arrives as HTTP/1.1; a chunked response ends with the connection', async () => {
    const { upstream, proxied } = await stage(
      answerWith('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n'),
    );
    const answer = await sendRaw(proxied.port, 'GET / HTTP/1.0\r\nHost: api.example\r\n\r\n');
    expect(answer).not.toMatch(/transfer-encoding/i);
    expect(bodyOf(answer)).toBe('abc');
    expect(upstream.arrivals[0]).toMatch(/^GET \/ HTTP\/1\.1\r\n[\s\S]*\r\nVia: 1\.0 portcullis\r\n/);
  });

  it.each([
    ['untrusted', false, '127.0.0.1'],
    ['trusted', true, '192.0.2.9, 192.0.2.8, 127.0.0.1'],
  ] as const)('peer %s → X-Forwarded-For accordingly', async (_name, isPeerTrusted, expected) => {
    const { upstream, proxied } = await stage(answerHeads(), { isPeerTrusted });
    await sendRaw(
      proxied.port,
      last('/', 'X-Forwarded-For: 192.0.2.9\r\nX-Forwarded-For: 192.0.2.8\r\nVia: 1.1 edge\r\n'),
    );
    expect(upstream.arrivals[0]).toContain(`\r\nX-Forwarded-For: ${expected}\r\n`);
    expect(upstream.arrivals[0]).toContain('\r\nVia: 1.1 edge, 1.1 portcullis\r\n');
  });

  it.each([
    ['remove', []],
    ['forward', ['Authorization', 'DPoP']],
  ] as const)('credentials: %s → %j arrive', async (credentials, expected) => {
    const { upstream, proxied } = await stage(answerHeads(), { credentials });
    await sendRaw(proxied.port, last('/', 'Authorization: DPoP a.b.c\r\nDPoP: d.e.f\r\n'));
    const arrived = [...(upstream.arrivals[0] ?? '').matchAll(/^(authorization|dpop):/gim)].map(([, name]) => name);
    expect(arrived).toEqual(expected);
  });

  it('Expect: 100-continue → the upstream decides; its 100 comes back, and then the body goes', async () => {
    const seen: string[] = [];
    const authority = await serve((incoming, outgoing) => {
      seen.push(`expect ${incoming.headers.expect}`);
      outgoing.writeContinue();
      void text(incoming).then((body) => {
        seen.push(body);
        outgoing.end('done');
      });
    });
    const proxied = keep(await startProxied({ upstream: `http://${authority}` }));
    const upload = request({
      port: proxied.port,
      method: 'POST',
      headers: { expect: '100-continue', 'content-length': 4 },
    });
    upload.on('continue', () => {
      seen.push('continue');
      upload.end('body');
    });
    upload.flushHeaders();
    const [response] = (await once(upload, 'response')) as [IncomingMessage]; // the argument of this event
    expect(await text(response)).toBe('done');
    expect(seen).toEqual(['expect 100-continue', 'continue', 'body']);
  });

  it.each<[string, number, ProxiedOptions['before'], number]>([
    ['the upstream refuses', 413, undefined, 1],
    ['refused before it is forwarded', 401, (_, outgoing) => outgoing.writeHead(401).end('no') !== undefined, 0],
  ])('Expect: 100-continue, %s → no 100, and %i', async (_name, status, before, arrivals) => {
    const { upstream, proxied } = await stage(
      answerWith('HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n', 'close'),
      { before },
    );
    const head = 'POST / HTTP/1.1\r\nHost: api.example\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n';
    expect(statusOf(await sendRaw(proxied.port, head))).toBe(status);
    expect(upstream.arrivals).toHaveLength(arrivals);
  });

  it('pipelined → responses in their order', async () => {
    const authority = await serve((incoming, outgoing) => {
      setTimeout(() => outgoing.end(incoming.url), incoming.url === '/1' ? 50 : 0);
    });
    const proxied = keep(await startProxied({ upstream: `http://${authority}` }));
    const answer = await sendRaw(proxied.port, get('/1') + get('/2') + last('/3'));
    expect(answer.match(/\/\d(?=\r?\n|$|H)/g)).toEqual(['/1', '/2', '/3']);
  });
});

describe('a response', () => {
  it('with trailers → forwarded, except those for control', async () => {
    const { proxied } = await stage(
      answerWith(
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 1\r\nSet-Cookie: a=b\r\n\r\n',
      ),
    );
    const answer = await sendRaw(proxied.port, last());
    expect(answer).toContain('\r\nTrailer: X-Sum\r\n');
    expect(bodyOf(answer)).toBe('3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n');
  });

  it('hop-by-hop headers and those that Connection names → stay behind', async () => {
    const { proxied } = await stage(
      answerWith(
        'HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nKeep-Alive: timeout=9\r\nX-Hop: 1\r\nUpgrade: h2c\r\nProxy-Authenticate: Basic\r\nX-End: 1\r\nContent-Length: 0\r\n\r\n',
      ),
    );
    const answer = await sendRaw(proxied.port, last());
    expect(answer).not.toMatch(/x-hop|timeout=9|upgrade|proxy-authenticate/i);
    expect(answer).toContain('\r\nX-End: 1\r\n');
  });

  it('without a length → in chunks; the part that is there comes at once', async () => {
    const { upstream, proxied } = await stage(
      answerWith('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n'),
    );
    const first = await sendRawFor(proxied.port, get(), (answer) => answer.includes('data: 1'));
    expect(first).toMatch(/\r\nTransfer-Encoding: chunked\r\n/);
    // The client has gone, so nothing more is asked of the upstream.
    await areGone({ upstream, proxied });
  });

  it('only its head is there → comes at once', async () => {
    const { proxied } = await stage(answerWith('HTTP/1.1 200 OK\r\nX-Early: 1\r\nContent-Length: 3\r\n\r\n'));
    expect(await sendRawFor(proxied.port, get(), (answer) => answer.includes('\r\n\r\n'))).toContain('X-Early: 1');
  });

  const informed = {
    '103': {
      request: last('/informed'),
      inform: (outgoing: ServerResponse) => outgoing.writeEarlyHints({ link: '</a.css>; rel=preload' }),
      head: 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n',
    },
    '100': {
      request: `${last('/informed', 'Expect: 100-continue\r\nContent-Length: 2\r\n').replace('GET', 'POST')}hi`,
      inform: (outgoing: ServerResponse) => outgoing.writeContinue(),
      head: 'HTTP/1.1 100 Continue\r\n\r\n',
    },
  };
  const bodies: Readonly<Record<string, (outgoing: ServerResponse) => Promise<void>>> = {
    'a small body': async (outgoing) => void outgoing.end('s'.repeat(100)),
    'a large body': async (outgoing) => void outgoing.end('l'.repeat(20_000)),
    async 'a body in two reads'(outgoing) {
      outgoing.writeHead(200, { 'content-length': 200 }).write('t'.repeat(100));
      await sleep(50);
      outgoing.end('t'.repeat(100));
    },
    'no body': async (outgoing) => void outgoing.end(),
  };
  it.each(Object.keys(informed).flatMap((status) => Object.keys(bodies).map((body) => ({ status, body }) as const)))(
    '$status for a request that waits behind another, then $body → before its head',
    async ({ status, body }) => {
      const { request, inform, head } = informed[status as keyof typeof informed];
      const upstream = await serve(async (incoming, outgoing) => {
        if (incoming.url === '/slow') return void setTimeout(() => outgoing.end('slow'), 50);
        inform(outgoing);
        await bodies[body]?.(outgoing);
      });
      const proxied = keep(await startProxied({ upstream: `http://${upstream}` }));
      const [, own = ''] = (await sendRaw(proxied.port, `${get('/slow')}${request}`)).split(/\r\n\r\nslow/);
      expect(own.startsWith(`${head}HTTP/1.1 200 OK\r\n`)).toBe(true);
      expect(own.slice(head.length)).not.toMatch(/HTTP\/1\.1 10/);
    },
  );

  it('Trailer with a length → not announced, because no trailer can follow', async () => {
    const { proxied } = await stage(answerWith('HTTP/1.1 200 OK\r\nTrailer: X-End\r\nContent-Length: 2\r\n\r\nok'));
    expect(await sendRaw(proxied.port, last())).toMatch(/^HTTP\/1\.1 200 (?!.*Trailer)/s);
  });

  it('headers of the gate → replace headers of the upstream with the same name, except Vary', async () => {
    const { proxied } = await stage(
      answerWith(
        'HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nVary: Accept\r\nDPoP-Nonce: x\r\nContent-Length: 0\r\n\r\n',
      ),
      { responseHeaders: ['DPoP-Nonce', 'fresh', 'vary', 'Origin'] },
    );
    const answer = await sendRaw(proxied.port, last());
    expect(answer.match(/dpop-nonce: .*\r\n/gi)).toEqual(['DPoP-Nonce: fresh\r\n']);
    expect(answer.match(/vary: .*\r\n/gi)).toEqual(['Vary: Accept\r\n', 'vary: Origin\r\n']);
    expect(answer.match(/Set-Cookie: [ab]\r\n/g)).toEqual(['Set-Cookie: a\r\n', 'Set-Cookie: b\r\n']);
  });

  it.each([
    ['the upstream has its own, and the rule none', true, 'https://upstream.example'],
    ['the rule has its own', false, 'https://app.example'],
  ])('CORS headers, if %s → %#', async (_what, prefersUpstreamCors, origin) => {
    const { proxied } = await stage(
      answerWith(
        'HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: https://upstream.example\r\nContent-Length: 0\r\n\r\n',
      ),
      { prefersUpstreamCors, responseHeaders: ['access-control-allow-origin', 'https://app.example'] },
    );
    const answer = await sendRaw(proxied.port, last());
    expect(answer.match(/(?<=access-control-allow-origin: ).*(?=\r\n)/gi)).toEqual([origin]);
  });

  it('before the body of the request has ended → whole, and the connection can be used again', async () => {
    const { proxied } = await stage(
      answerWith('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno', 'close'),
    );
    const socket = open(proxied.port, 'POST / HTTP/1.1\r\nHost: api.example\r\nContent-Length: 10\r\n\r\n');
    const [first] = await once(socket, 'data');
    expect(String(first)).toMatch(/^HTTP\/1\.1 403 [\s\S]*no$/);
    socket.write(`0123456789${last('/again')}`);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 403 /);
  });

  it('refused while a client goes on to send → closed after a bounded rest', async () => {
    const { proxied } = await stage((socket) => {
      if (socket.bytesWritten === 0) socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno');
    });
    const socket = open(proxied.port, 'POST / HTTP/1.1\r\nHost: api.example\r\nTransfer-Encoding: chunked\r\n\r\n');
    const closed = new Promise((resolve) => socket.once('close', resolve));
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    const more = setInterval(() => socket.write(chunk), 1);
    await closed;
    clearInterval(more);
    expect(proxied.proxy.inFlight()).toBe(0);
  });
});

describe('responses of one iteration', () => {
  const whole = (body: string): string => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

  it('a malformed request after a complete response → the response is sent first', async () => {
    const { upstream, proxied } = await stage(() => {});
    const client = open(proxied.port, get());
    await soon(() => expect(upstream.arrivals[0]).toContain('\r\n\r\n'));
    // Both are there when the proxy next reads, the answer before the request.
    for (const socket of upstream.sockets) socket.write(ok);
    client.write('not HTTP\r\n\r\n');
    expect(await text(client)).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\nokHTTP\/1\.1 400 /);
  });

  it.each([0, 1, 8192, 8193, 100_000])('a body of %i bytes → arrives byte by byte', async (size) => {
    const body = Buffer.alloc(size, Buffer.from(Array.from({ length: 256 }, (_, i) => i))).toString('latin1');
    const { proxied } = await stage(answerWith(whole(body)));
    const answer = await sendRaw(proxied.port, last());
    expect(answer).toContain(`\r\nContent-Length: ${size}\r\n`);
    expect(bodyOf(answer) === body).toBe(true);
  });

  it('of many clients, one with a large rest → each client gets its own', async () => {
    const { upstream, proxied } = await stage((socket, arrived) => {
      if (arrived.startsWith('GET /large ')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100001\r\n\r\n>');
    });
    const large = open(proxied.port, last('/large'));
    await once(large, 'readable');
    const small = Array.from({ length: 100 }, () => open(proxied.port, last()));
    await soon(() => expect(upstream.arrivals.join('').split('\r\n\r\n')).toHaveLength(102));
    // The proxy reads all of it in one iteration, the large one first.
    const [first, ...others] = upstream.sockets;
    first?.write('x'.repeat(100_000));
    for (const [i, socket] of others.entries()) socket.write(whole(`body ${i}`));
    expect(bodyOf(await text(large))).toBe(`>${'x'.repeat(100_000)}`);
    const bodies = await Promise.all(small.map(async (each) => bodyOf(await text(each))));
    expect(new Set(bodies)).toEqual(new Set(others.map((_, i) => `body ${i}`)));
  });

  it.each(['', '/slow'])('a head before its body, after "%s" → bytes of its values unchanged', async (earlier) => {
    const head = 'HTTP/1.1 200 OK\r\nX-Name: \xe9\r\nTransfer-Encoding: chunked\r\n\r\n';
    const { proxied } = await stage(async (socket, arrived) => {
      if (/GET \/slow [\s\S]*\r\n\r\n$/.test(arrived)) await sleep(50);
      if (!/GET \/head [\s\S]*\r\n\r\n$/.test(arrived)) return void socket.write(ok);
      socket.write(Buffer.from(head, 'latin1'));
      await sleep(50);
      socket.write('3\r\nabc\r\n0\r\n\r\n');
    });
    const answer = await sendRaw(proxied.port, `${earlier === '' ? '' : get(earlier)}${last('/head')}`);
    expect(answer).toContain('\r\nX-Name: \xe9\r\n');
    expect(answer).toMatch(/\r\n3\r\nabc\r\n0\r\n\r\n$/);
  });
});

it('many requests on one connection → no listener stays on it', async () => {
  const sockets = new Set<Socket>();
  const before = ({ socket }: IncomingMessage): boolean => {
    sockets.add(socket);
    return false;
  };
  const { proxied } = await stage(answerHeads(), { before });
  const count = 40;
  const client = open(proxied.port, get().repeat(count));
  for (let answer = ''; answer.split('HTTP/1.1 200').length <= count; ) answer += String(await once(client, 'data'));
  const [socket] = sockets;
  expect(sockets.size).toBe(1);
  await soon(() => expect(socket?.listenerCount('close')).toBeLessThan(10));
  client.destroy();
});

describe('back-pressure', () => {
  const megabyte = Buffer.alloc(1024 * 1024, 'x');
  const total = 64;
  /** Writes megabytes as fast as they are taken, and ends. Returns the reader of their number. */
  function writeAll(stream: Writable): () => number {
    let written = 0;
    const write = (): void => {
      while (written < total) {
        written++;
        if (!stream.write(megabyte)) return void stream.once('drain', write);
      }
      stream.end();
    };
    write();
    return () => written;
  }
  /** Waits until a number no longer grows. */
  async function settle(read: () => number): Promise<number> {
    for (let before = -1, equal = 0; ; ) {
      const now = read();
      equal = now > 0 && now === before ? equal + 1 : 0;
      if (equal === 6) return now;
      before = now;
      await sleep(50);
    }
  }

  it('a client that does not read → the upstream is not read either; then all arrives', async () => {
    let readWritten = (): number => 0;
    const authority = await serve((_incoming, outgoing) => {
      readWritten = writeAll(outgoing);
    });
    const proxied = keep(await startProxied({ upstream: `http://${authority}` }));
    const [response] = (await once(request({ port: proxied.port }).end(), 'response')) as [IncomingMessage]; // as above
    expect(await settle(readWritten)).toBeLessThan(total / 2);
    let length = 0;
    for await (const chunk of response) length += (chunk as Buffer).length;
    expect(length).toBe(total * megabyte.length);
  });

  it('clients that read late and alternately → each gets its own response, byte by byte', async () => {
    const bodyOfCaller = (url = ''): string => `${url} `.repeat(120_000);
    const authority = await serve(({ url }, outgoing) => {
      const body = bodyOfCaller(url);
      // Parts of all sizes, so that many reads bring a part of one answer and all bring others in between.
      for (let at = 0, size = 1; at < body.length; at += size, size = (size * 7) % 90_001) {
        outgoing.write(body.slice(at, at + size));
      }
      outgoing.end();
    });
    const proxied = keep(await startProxied({ upstream: `http://${authority}` }));
    const callers = Array.from({ length: 8 }, (_, index) => `/caller/${index}`);
    const received = await Promise.all(
      callers.map(async (path, index) => {
        const [response] = await once(request({ port: proxied.port, path }).end(), 'response');
        await sleep(5 * index);
        return text(response);
      }),
    );
    for (const [index, path] of callers.entries()) expect(received[index] === bodyOfCaller(path), path).toBe(true);
  });

  it('an upstream that does not read → the client is not read either; then all arrives', async () => {
    let resume = (): void => {};
    let length = 0;
    const authority = await serve((incoming, outgoing) => {
      resume = () => {
        incoming.on('data', (chunk: Buffer) => {
          length += chunk.length;
        });
        incoming.on('end', () => outgoing.end('done'));
      };
    });
    const proxied = keep(await startProxied({ upstream: `http://${authority}` }));
    const upload = request({ port: proxied.port, method: 'POST' });
    expect(await settle(writeAll(upload))).toBeLessThan(total / 2);
    resume();
    const [response] = (await once(upload, 'response')) as [IncomingMessage]; // as above
    expect(await text(response)).toBe('done');
    expect(length).toBe(total * megabyte.length);
  });

  it('a client that takes no byte for the time limit → closed, and the upstream is let go', async () => {
    const { upstream, proxied } = await stage(
      (socket) => {
        socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
        flood(socket, `100000\r\n${megabyte}\r\n`);
      },
      { unreadTimeout: 0.3 },
    );
    const client = open(proxied.port, get()).pause();
    await soon(() => expect(upstream.arrivals).toHaveLength(1));
    await areGone({ upstream, proxied });
    client.destroy();
  });
});

describe('a client that does not read, and an upstream that ends the connection', () => {
  /** Responds until the proxy pauses the response, then ends the connection; the client reads after that. */
  async function meet(framing: string, end: (socket: Socket, proxied: Proxied) => void) {
    let outgoing: ServerResponse | undefined;
    let written = 0;
    let setEnded = (): void => {};
    const ended = new Promise<void>((resolve) => {
      setEnded = resolve;
    });
    const respond = async (socket: Socket): Promise<void> => {
      socket.write(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n`);
      while (outgoing?.writableNeedDrain === false) {
        socket.write('x'.repeat(65_536));
        written += 65_536;
        await sleep(5);
      }
      end(socket, proxied);
      setEnded();
    };
    const before: ProxiedOptions['before'] = (_incoming, response) => {
      outgoing = response;
      return false;
    };
    const { proxied, upstream } = await stage((socket) => void respond(socket), { before });
    const client = open(proxied.port, last()).pause();
    await ended;
    await soon(() => expect(upstream.sockets.size).toBe(0));
    const body = bodyOf(await text(client));
    return { received: body.replace(/[^x]/g, '').length, isWhole: body.endsWith('\r\n0\r\n\r\n'), written, proxied };
  }

  it('FIN ends the body → the complete body', async () => {
    const { received, written, isWhole } = await meet('Connection: close', (socket) => socket.end());
    expect([received, isWhole]).toEqual([written, true]);
  });

  it.each<[string, string, (socket: Socket, proxied: Proxied) => void]>([
    ['a reset', 'Connection: close', (socket) => socket.resetAndDestroy()],
    ['FIN before the length', 'Connection: close\r\nContent-Length: 100000000', (socket) => socket.end()],
    ['the proxy closing', 'Connection: close', (_, proxied) => proxied.proxy.close()],
  ])('%s → cut, and never ends as if it were whole', async (_name, framing, end) => {
    const { isWhole, proxied } = await meet(framing, end);
    expect(isWhole).toBe(false);
    expect(proxied.cut).toEqual(['upstream_unavailable']);
  });
});

describe('the pool', () => {
  it('one request after the other → one connection, with and without bodies', async () => {
    const { upstream, proxied } = await stage((socket, arrived) => {
      if (/(?:\r\n\r\n|hello)$/.test(arrived) && !/: 5\r\n.*\r\n\r\n$/.test(arrived)) socket.write(ok);
    });
    for (let i = 0; i < 3; i++) expect(statusOf(await sendRaw(proxied.port, last()))).toBe(200);
    expect(upstream.arrivals).toHaveLength(1);
    for (let i = 0; i < 3; i++) await sendRaw(proxied.port, lastPost);
    expect(upstream.arrivals).toHaveLength(2);
  });

  it('a kept connection that the upstream closes → the next request takes another', async () => {
    const { upstream, proxied } = await stage(answerWith(ok, 'close'));
    for (let i = 0; i < 3; i++) {
      expect(statusOf(await sendRaw(proxied.port, last()))).toBe(200);
      await soon(() => expect(upstream.sockets.size).toBe(0));
    }
  });

  it('POST whose response is lost on a kept connection → 502, and sent once', async () => {
    let first = true;
    const { upstream, proxied } = await stage((socket, arrived) => {
      if (!/(?:\r\n\r\n|hello)$/.test(arrived) || /: 5\r\n.*\r\n\r\n$/.test(arrived)) return;
      if (first) socket.write(ok);
      else socket.destroy();
      first = false;
    });
    expect(statusOf(await sendRaw(proxied.port, lastPost))).toBe(200);
    expect(statusOf(await sendRaw(proxied.port, lastPost))).toBe(502);
    expect(upstream.arrivals).toHaveLength(1);
    expect(upstream.arrivals[0]?.match(/HTTP\/1\.1\r\n/g)).toHaveLength(2);
    expect(proxied.refused).toEqual(['upstream_unavailable']);
  });

  it('a client that takes its part of the places → 503 for it, and another client is served', async () => {
    const { upstream, proxied } = await stage(
      (socket, arrived) => {
        if (arrived.includes('/now')) socket.write(ok);
      },
      { maxInFlight: 8, share: 0.25 },
    );
    const request = (target: string, client: string): string =>
      `GET ${target} HTTP/1.1\r\nHost: a\r\nX-Client: ${client}\r\nConnection: close\r\n\r\n`;
    const held = ['2001:db8::1', '2001:db8::2'].map((client) => open(proxied.port, request('/held', client)));
    await soon(() => expect(upstream.arrivals.filter((bytes) => bytes.includes('/held'))).toHaveLength(2));
    expect(statusOf(await sendRaw(proxied.port, request('/now', '2001:db8::3')))).toBe(503);
    expect(statusOf(await sendRaw(proxied.port, request('/now', '2001:db8:0:1::3')))).toBe(200);
    expect(proxied.refused).toEqual(['upstream_overloaded']);
    for (const socket of held) socket.destroy();
    await soon(() => expect(proxied.proxy.inFlight()).toBe(0));
    expect(statusOf(await sendRaw(proxied.port, request('/now', '2001:db8::3')))).toBe(200);
  });

  it('a client that goes away → its request to the upstream is given up', async () => {
    const { upstream, proxied } = await stage(() => {});
    const half = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf`;
    const clients = [get(), post('hello'), half].map((bytes) => open(proxied.port, bytes));
    await soon(() => expect(upstream.arrivals.filter((bytes) => bytes.includes('\r\n\r\n'))).toHaveLength(3));
    for (const client of clients) client.destroy();
    await areGone({ upstream, proxied });
  });
});

describe('failures', () => {
  const slow = { timeout: 0.3 };
  const forms: [string, string][] = [
    ['GET', last()],
    ['POST', lastPost],
  ];

  it.each(forms)('%s, no listener → 502 in the configured body, immediately', async (_name, bytes) => {
    const upstream = await startRawUpstream(() => {});
    await upstream.close();
    const proxied = keep(await startProxied({ upstream: upstream.url }));
    const answer = await sendRaw(proxied.port, bytes);
    expect(statusOf(answer)).toBe(502);
    expect(JSON.parse(bodyOf(answer))).toEqual({
      detail: { error: 'temporarily_unavailable', error_description: 'The server behind this gate cannot be reached.' },
    });
    expect(proxied.refused).toEqual(['upstream_unavailable']);
  });

  it.each(forms)('%s, no response in time → 504', async (_name, bytes) => {
    const { proxied, upstream } = await stage(() => {}, slow);
    expect(statusOf(await sendRaw(proxied.port, bytes))).toBe(504);
    expect(proxied.refused).toEqual(['upstream_timeout']);
    await soon(() => expect(upstream.sockets.size).toBe(0));
  });

  it.each(forms)(
    '%s, the response stops in the middle → the connection is cut, and never ends as if it were complete',
    async (_name, bytes) => {
      const { proxied } = await stage((socket) => {
        socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n');
      }, slow);
      const answer = await sendRaw(proxied.port, bytes);
      expect(answer).toContain('3\r\nabc\r\n');
      expect(answer).not.toContain('0\r\n\r\n');
      expect(proxied.cut).toEqual(['upstream_timeout']);
    },
  );

  it.each<[string, string]>([
    ...forms,
    [
      'WebSocket',
      get('/', 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'),
    ],
  ])('%s, an event stream → exempt from the timeout, and cut after TUNNEL_TIMEOUT', async (_name, bytes) => {
    const stream = 'Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n';
    let answers = 0;
    const { proxied } = await stage(
      (socket) => {
        if (answers++ > 0) return;
        socket.write(`HTTP/1.1 200 OK\r\n${stream}`);
        setTimeout(() => socket.write('9\r\ndata: 2\n\n\r\n'), 200);
      },
      { timeout: 0.1, tunnelTimeout: 0.6 },
    );
    expect(bodyOf(await sendRaw(proxied.port, bytes))).toMatch(/data: 1.*data: 2\n\n\r\n$/s);
    expect(proxied.cut).toEqual(['upstream_timeout']);
  });

  it.each(forms)(
    '%s, the process ends before its response → 504; after it has begun → not cut',
    async (_name, bytes) => {
      const { proxied, upstream } = await stage(() => {});
      const waiting = sendRaw(proxied.port, bytes);
      await soon(() => expect(upstream.arrivals).toHaveLength(1));
      proxied.proxy.endWaiting();
      expect([statusOf(await waiting), proxied.refused]).toEqual([504, ['upstream_timeout']]);
      const begun = open(proxied.port, bytes);
      await soon(() => expect(upstream.arrivals).toHaveLength(2));
      for (const socket of upstream.sockets) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no');
      await once(begun, 'readable');
      proxied.proxy.endWaiting();
      for (const socket of upstream.sockets) socket.write('k');
      expect(bodyOf(await text(begun))).toBe('ok');
    },
  );

  it.each(forms)('%s, its response arrives while this process stalls for longer → sent', async (_name, bytes) => {
    const { proxied } = await stage(
      (socket, arrived) => {
        if (!/\r\n\r\n(?:hello)?$/.test(arrived)) return;
        socket.write(ok);
        stall(600);
      },
      { timeout: 0.5 },
    );
    expect(statusOf(await sendRaw(proxied.port, bytes))).toBe(200);
  });

  it.each(forms)('%s, the rest of its response arrives while this process stalls → sent', async (_name, bytes) => {
    const { upstream, proxied } = await stage(
      (socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no'),
      { timeout: 0.5 },
    );
    const client = open(proxied.port, bytes);
    await once(client, 'readable');
    for (const socket of upstream.sockets) socket.write('k');
    stall(600);
    expect(bodyOf(await text(client))).toBe('ok');
  });

  it('an upload arrives while this process stalls → forwarded', async () => {
    const { proxied } = await stage(
      (socket, arrived) => {
        if (arrived.endsWith('hello')) socket.write(ok);
        if (!arrived.endsWith('hell')) return;
        client.write('o');
        stall(600);
      },
      { uploadTimeout: 0.5 },
    );
    const client = open(proxied.port, lastPost.slice(0, -1));
    expect(statusOf(await text(client))).toBe(200);
  });

  it.each(['Content-Length: 9', 'Transfer-Encoding: chunked'])(
    'the upstream dies in a response with %s → cut',
    async (framing) => {
      const part = framing.startsWith('T') ? '3\r\nabc\r\n' : 'abc';
      const { proxied } = await stage(answerWith(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n${part}`, 'close'));
      const answer = await sendRaw(proxied.port, last());
      expect(answer).toContain('abc');
      expect(answer).not.toContain('0\r\n\r\n');
      expect(proxied.cut).toEqual(['upstream_unavailable']);
    },
  );

  it('HTTP/1.0 client → a reset, because a plain end would look complete', async () => {
    const { proxied } = await stage(
      answerWith('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n', 'close'),
    );
    const socket = open(proxied.port, 'GET / HTTP/1.0\r\nHost: a\r\n\r\n');
    socket.resume();
    const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException]; // the argument of this event
    expect(error.code).toBe('ECONNRESET');
  });

  it('the upstream dies in a response after another one → cut', async () => {
    const { proxied } = await stage((socket, arrived) => {
      if (!arrived.includes('GET /cut')) {
        setTimeout(() => socket.write(ok), 50);
        return;
      }
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc');
      setImmediate(() => socket.destroy());
    });
    const socket = open(proxied.port, get('/late') + get('/cut')).resume();
    await soon(() => expect(proxied.cut).toEqual(['upstream_unavailable']));
    await soon(() => expect(socket.closed).toBe(true));
  });

  it('more requests than the limit in flight → 503 with Retry-After; later ones pass', async () => {
    const { upstream, proxied } = await stage(
      (socket, arrived) => {
        if (arrived.startsWith('GET /fine')) socket.write(ok);
      },
      { maxInFlight: 2 },
    );
    const waiting = [get(), get()].map((bytes) => open(proxied.port, bytes));
    await soon(() => expect(upstream.arrivals.filter(Boolean)).toHaveLength(2));
    const refused = await sendRaw(proxied.port, last('/fine'));
    expect(statusOf(refused)).toBe(503);
    expect(refused).toMatch(/\r\nretry-after: 5\r\n/i);
    for (const socket of waiting) socket.destroy();
    await soon(() => expect(proxied.proxy.inFlight()).toBe(0));
    expect(statusOf(await sendRaw(proxied.port, last('/fine')))).toBe(200);
  });

  it.each(['Content-Length: 9\r\n\r\nhalf', 'Transfer-Encoding: chunked\r\n\r\n9\r\nhalf'])(
    'a body that stops in the middle (%j) → 408 after the time limit, and the request is given up',
    async (rest) => {
      const { upstream, proxied } = await stage(() => {}, { timeout: 60, uploadTimeout: 0.3 });
      const bytes = `POST / HTTP/1.1\r\nHost: a\r\n${rest}`;
      expect(statusOf(await sendRawFor(proxied.port, bytes, (seen) => seen.includes('\r\n\r\n')))).toBe(408);
      expect(proxied.refused).toEqual(['upload_timeout']);
      await areGone({ upstream, proxied });
    },
  );

  it('a body that arrives slowly, and an upstream that waits for all of it → no time limit is reached', async () => {
    const { proxied } = await stage(
      (socket, arrived) => {
        if (arrived.endsWith('012345678')) socket.write(ok);
      },
      { timeout: 0.3, uploadTimeout: 0.3 },
    );
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 9\r\n\r\n';
    const socket = open(proxied.port, head).setNoDelay(true);
    for (const byte of '012345678') {
      await sleep(50);
      socket.write(byte);
    }
    expect(statusOf(await text(socket))).toBe(200);
  });
});

describe('kinds of upstream', () => {
  const path = join(useFolder(), 'upstream.sock');
  it('unix:/path → over its socket, with and without a body', async () => {
    const server = createServer(echo);
    await once(server.listen(path), 'listening');
    keep({ close: () => stop(server) });
    const proxied = keep(await startProxied({ upstream: `unix:${path}` }));
    expect(bodyOf(await sendRaw(proxied.port, last()))).toContain('GET ');
    expect(bodyOf(await sendRaw(proxied.port, lastPost))).toContain('POST hello');
  });

  it.each(['localhost', '127.0.0.1'])(
    'https://%s → over TLS; the name of the upstream counts, not the Host of the client',
    async (name) => {
      const { key, cert, ca } = await createTestCertificates();
      const hosts: (string | undefined)[] = [];
      const resumed: boolean[] = [];
      const server = createTlsServer({ key, cert });
      server.on('secureConnection', (socket) => resumed.push(socket.isSessionReused()));
      server.on('upgrade', (_, socket) => socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n'));
      const authority = await serve((incoming, outgoing) => {
        hosts.push(incoming.headers.host);
        echo(incoming, outgoing);
      }, server);
      const url = `https://${name}:${authority.split(':')[1]}`;
      const proxied = keep(await startProxied({ upstream: url, tls: { ca } }));
      expect(bodyOf(await sendRaw(proxied.port, last()))).toContain('GET ');
      expect(bodyOf(await sendRaw(proxied.port, lastPost))).toContain('POST hello');
      expect(hosts).toEqual(['api.example', 'api.example']);
      const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
      expect(statusOf(await sendRaw(proxied.port, get('/', upgrade)))).toBe(403);
      expect(statusOf(await sendRaw(proxied.port, last().replace('GET', 'HEAD')))).toBe(200);
      expect(statusOf(await sendRaw(proxied.port, last()))).toBe(200);
      // For GET, POST, the upgrade, and GET after HEAD.
      expect(resumed).toEqual([false, true, true, true]);
      const distrustful = keep(await startProxied({ upstream: url }));
      expect(statusOf(await sendRaw(distrustful.port, last()))).toBe(502);
      expect(statusOf(await sendRaw(distrustful.port, post('a', 'Connection: close\r\n')))).toBe(502);
    },
  );

  it.each([
    '',
    'localhost:3000',
    'ftp://a',
    'http://a/path',
    'http://a/?q',
    'http://u:p@a',
    'http://a/#f',
    'unix:relative',
  ])('%j → TypeError', async (upstream) => {
    await expect(startProxied({ upstream })).rejects.toThrow(TypeError);
  });
});
