import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  answerHeads,
  areGone,
  flood,
  keep,
  ok,
  open,
  type Proxied,
  type Respond,
  sendRaw,
  sendRawFor,
  soon,
  stage,
  startProxied,
  startRawUpstream,
} from './proxied.ts';

const key = randomBytes(16).toString('base64');
const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
const handshake = (more = ''): string =>
  `GET /chat HTTP/1.1\r\nHost: api.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n${more}\r\n`;
const agreed = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`;

/** Agrees, and sends back in capitals what comes then. */
const echo: Respond = (socket, arrived) => {
  const end = arrived.indexOf('\r\n\r\n') + 4;
  if (end < 4) return;
  if (socket.listenerCount('data') > 1) return;
  socket.write(agreed + arrived.slice(end).toUpperCase());
  socket.on('data', (chunk) => socket.write(chunk.toString().toUpperCase()));
};

/** Opens a connection, and notes what comes back. */
function openTunnel(proxied: Proxied, bytes = handshake(), options: object = {}) {
  const socket = open(proxied.port, bytes, options);
  let seen = '';
  socket.on('data', (chunk) => {
    seen += String(chunk);
  });
  return {
    socket,
    /** Waits for a text. Resolves with everything. */
    async read(text: string): Promise<string> {
      await soon(() => expect(seen).toContain(text));
      return seen;
    },
  };
}

describe('WebSocket', () => {
  it('agreed → bytes go both ways, also those sent along with the handshake', async () => {
    const { upstream, proxied } = await stage(echo, { identity: { names: ['X-Auth-Subject'], values: ['me'] } });
    const tunnel = openTunnel(proxied, `${handshake()}first`);
    expect(await tunnel.read('FIRST')).toMatch(
      new RegExp(
        `^HTTP/1\\.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Accept: ${accept.replaceAll('+', '\\+')}\\r\\n\\r\\n`,
      ),
    );
    tunnel.socket.write('second');
    await tunnel.read('SECOND');
    expect(upstream.arrivals[0]).toMatch(
      /\r\nX-Auth-Subject: me\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirstsecond$/,
    );
    expect(proxied.proxy.inFlight()).toBe(1);
    tunnel.socket.destroy();
    await areGone({ upstream, proxied });
  });

  it('header values outside ASCII → their bytes unchanged', async () => {
    const named = agreed.replace('\r\n\r\n', '\r\nX-Name: \xe9\r\n\r\n');
    const { proxied } = await stage((socket) => void socket.write(Buffer.from(named, 'latin1')));
    const tunnel = openTunnel(proxied);
    expect(await tunnel.read('\r\n\r\n')).toContain('\r\nX-Name: \xe9\r\n');
    tunnel.socket.destroy();
  });

  it('the upstream ends it → the client sees the end', async () => {
    const { upstream, proxied } = await stage(echo);
    const tunnel = openTunnel(proxied);
    await tunnel.read('\r\n\r\n');
    const closed = once(tunnel.socket, 'close');
    for (const socket of upstream.sockets) socket.end();
    await closed;
    await soon(() => expect(proxied.proxy.inFlight()).toBe(0));
  });

  describe('megabytes', () => {
    const sent = randomBytes(4 * 1024 * 1024).toString('latin1');
    /** Collects, slower than the other side sends, so that the gate has bytes to send when that side closes. */
    const collectLate = (socket: Socket): (() => string) => {
      const parts: string[] = [];
      socket.on('data', (chunk) => {
        parts.push(chunk.toString('latin1'));
        socket.pause();
        setTimeout(() => socket.resume(), 1);
      });
      return () => parts.join('');
    };
    /** Agrees to an upgrade, and only then calls a function. */
    const agree =
      (then: (socket: Socket) => void): Respond =>
      (socket, arrived) => {
        if (!arrived.endsWith('\r\n\r\n')) return;
        socket.removeAllListeners('data');
        socket.write(agreed);
        then(socket);
      };

    it('each way → all arrive, in order', async () => {
      const { proxied } = await stage(agree((socket) => socket.pipe(socket)));
      const socket = open(proxied.port, handshake());
      await once(socket, 'data');
      const read = collectLate(socket);
      socket.write(sent, 'latin1');
      await soon(() => expect(read().length).toBe(sent.length));
      expect(read() === sent).toBe(true);
      socket.destroy();
    });

    it('from an upstream that closes, to a client that reads later → all arrive, then the end', async () => {
      const { proxied } = await stage(agree((socket) => void socket.end(sent, 'latin1')));
      const socket = open(proxied.port, handshake());
      const read = collectLate(socket);
      await once(socket, 'close');
      expect(read().slice(agreed.length) === sent).toBe(true);
    });

    it('from a client that closes, to an upstream that reads later → all arrive', async () => {
      let read = (): string => '';
      const { upstream, proxied } = await stage(
        agree((socket) => {
          read = collectLate(socket);
        }),
      );
      const socket = open(proxied.port, handshake());
      await once(socket, 'data');
      socket.end(sent, 'latin1');
      await soon(() => expect(upstream.sockets.size).toBe(0));
      expect(read() === sent).toBe(true);
    });
  });

  it('a tunnel that is idle for its time limit → closed at both ends; one with traffic stays', {}, async () => {
    const { upstream, proxied } = await stage(echo, { tunnelTimeout: 1 });
    const [idle, busy] = [openTunnel(proxied), openTunnel(proxied)];
    await Promise.all([idle.read('\r\n\r\n'), busy.read('\r\n\r\n')]);
    const traffic = setInterval(() => busy.socket.write('ping'), 100);
    await once(idle.socket, 'close');
    expect(busy.socket.closed).toBe(false);
    await soon(() => expect(upstream.sockets.size).toBe(1));
    clearInterval(traffic);
    await once(busy.socket, 'close');
    await soon(() => expect(proxied.proxy.inFlight()).toBe(0));
  });

  it.each(['client', 'upstream'])(
    'only the %s closes → closed on both sides, and what it sent has arrived',
    async (side) => {
      const upstream = keep(
        await startRawUpstream(
          (socket, arrived) => {
            if (arrived.endsWith('\r\n\r\n')) socket.write(agreed);
            if (side === 'upstream') setTimeout(() => socket.end('last of the upstream'), 20);
          },
          { allowHalfOpen: true },
        ),
      );
      const proxied = keep(await startProxied({ upstream: upstream.url }));
      const { socket, read } = openTunnel(proxied, handshake(), { allowHalfOpen: true });
      await read('101');
      if (side === 'client') socket.end('last of the client');
      await soon(() => expect(proxied.proxy.inFlight()).toBe(0));
      if (side === 'client') expect(upstream.arrivals.join('')).toContain('last of the client');
      else await read('last of the upstream');
      // The side that has not closed notices it when it writes.
      const other = side === 'client' ? [...upstream.sockets][0] : socket;
      await soon(() => {
        other?.write('x');
        expect(other?.destroyed).toBe(true);
      });
    },
  );

  it.each([
    ['an upstream that takes no byte', 'upstream', 0],
    ['a client that takes no byte', 'client', 0],
    ['a client that takes no byte, and sends all the time', 'client', 50],
  ])('%s → few bytes are read from the other side, and both are closed', async (_name, reader, interval) => {
    let readSent = (): number => 0;
    const send = (socket: Socket): void => {
      readSent = flood(socket, Buffer.alloc(65_536));
    };
    const { upstream, proxied } = await stage(
      (socket, arrived) => {
        if (!arrived.includes('\r\n\r\n') || socket.listenerCount('drain') > 0) return;
        socket.write(agreed);
        if (reader === 'upstream') socket.pause();
        else send(socket);
      },
      { unreadTimeout: 0.3 },
    );
    const socket = open(proxied.port, handshake());
    if (reader === 'upstream') socket.once('data', () => send(socket));
    else socket.pause();
    await soon(() => expect(upstream.arrivals).toHaveLength(1));
    const traffic = interval > 0 && setInterval(() => socket.write('ping'), interval);
    await soon(() => expect(proxied.proxy.inFlight()).toBe(0));
    if (traffic !== false) clearInterval(traffic);
    // Kernel buffers of four sockets.
    expect(readSent()).toBeLessThan(64 * 1024 * 1024);
    for (const each of upstream.sockets) each.destroy();
    socket.destroy();
  });

  it('the listener closes → tunnels end after the grace', async () => {
    const upstream = keep(await startRawUpstream(echo));
    const proxied = await startProxied({ upstream: upstream.url });
    const tunnel = openTunnel(proxied);
    await tunnel.read('\r\n\r\n');
    const closed = once(tunnel.socket, 'close');
    await proxied.close();
    await closed;
  });
});

describe('an upgrade that is not agreed', () => {
  it.each([
    [
      '401 with a body',
      'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 2\r\n\r\nno',
      /^HTTP\/1\.1 401 [\s\S]*Bearer[\s\S]*no$/,
    ],
    [
      '426',
      'HTTP/1.1 426 Upgrade Required\r\nSec-WebSocket-Version: 13\r\nContent-Length: 0\r\n\r\n',
      /^HTTP\/1\.1 426 [\s\S]*Sec-WebSocket-Version: 13/,
    ],
    [
      '200 in chunks',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
      /^HTTP\/1\.1 200 [\s\S]*3\r\nabc\r\n0\r\n\r\n$/,
    ],
    ['101 with the wrong Sec-WebSocket-Accept', agreed.replace(accept, 'x'.repeat(28)), /^HTTP\/1\.1 502 /],
    [
      '101 without it',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
      /^HTTP\/1\.1 502 /,
    ],
    ['101 to another protocol', agreed.replace('Upgrade: websocket', 'Upgrade: h2c'), /^HTTP\/1\.1 502 /],
  ])('%s → a response, and nothing reaches the upstream', async (_name, bytes, expected) => {
    const { upstream, proxied } = await stage((socket, arrived) => {
      if (arrived.endsWith('\r\n\r\n')) socket.write(bytes);
    });
    const answer = await sendRaw(proxied.port, `${handshake()}GET /admin HTTP/1.1\r\nHost: api.example\r\n\r\n`);
    expect(answer).toMatch(expected);
    expect(upstream.arrivals.join('')).not.toContain('/admin');
    await soon(() => expect(proxied.proxy.inFlight()).toBe(0));
  });

  it('the upstream is away → 502; too slow → 504', async () => {
    const gone = await startRawUpstream(() => {});
    await gone.close();
    const away = keep(await startProxied({ upstream: gone.url }));
    expect(await sendRaw(away.port, handshake())).toMatch(/^HTTP\/1\.1 502 /);
    const { proxied } = await stage(() => {}, { timeout: 0.3 });
    expect(await sendRaw(proxied.port, handshake())).toMatch(/^HTTP\/1\.1 504 /);
  });

  const head200 = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n';

  it('200, then nothing → cut after the time limit of a response', async () => {
    const { upstream, proxied } = await stage((socket) => void socket.write(head200), { timeout: 0.3 });
    expect(await sendRaw(proxied.port, handshake())).toMatch(/abc\r\n$/);
    expect(proxied.cut).toEqual(['upstream_timeout']);
    await soon(() => expect(upstream.sockets.size).toBe(0));
  });

  it('200 that goes on, with pauses below the time limit → not cut', async () => {
    const { proxied } = await stage(
      (socket) => {
        socket.write(head200);
        for (const at of [1, 2, 3]) setTimeout(() => socket.write('3\r\ndef\r\n'), at * 250);
        setTimeout(() => socket.end('0\r\n\r\n'), 1000);
      },
      { timeout: 0.6 },
    );
    expect((await sendRaw(proxied.port, handshake())).match(/def/g)).toHaveLength(3);
    expect(proxied.cut).toEqual([]);
  });

  it.each([200, 403])(
    '%i without an end, to a client that does not read → few bytes are read, and both are closed',
    async (status) => {
      let readSent = (): number => 0;
      const { upstream, proxied } = await stage(
        (socket) => {
          socket.write(`HTTP/1.1 ${status} A\r\nConnection: close\r\n\r\n`);
          readSent = flood(socket, Buffer.alloc(65_536));
        },
        { unreadTimeout: 0.3, timeout: 3 },
      );
      const socket = open(proxied.port, handshake()).pause();
      await soon(() => expect(upstream.arrivals).toHaveLength(1));
      await soon(() => expect(upstream.sockets.size).toBe(0));
      expect(readSent()).toBeLessThan(64 * 1024 * 1024);
      expect(proxied.proxy.inFlight()).toBe(0);
      socket.destroy();
    },
  );

  it.each([
    ['before the response', ''],
    ['during the response', head200],
  ])('the client ends its side %s → the request is cancelled', async (_name, bytes) => {
    const { upstream, proxied } = await stage((socket) => void socket.write(bytes));
    const socket = open(proxied.port, handshake(), { allowHalfOpen: true });
    await soon(() => expect(upstream.arrivals.join('')).toContain('/chat'));
    if (bytes !== '') await once(socket, 'data');
    socket.end();
    await areGone({ upstream, proxied });
    socket.destroy();
  });

  it('refused, and the client still sends for the tunnel before it reads → it gets the response, and then the end', async () => {
    const { upstream, proxied } = await stage((socket) => {
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno');
    });
    const socket = open(proxied.port, handshake(), { allowHalfOpen: true }).pause();
    let failed: Error | undefined;
    socket.on('error', (error) => {
      failed = error;
    });
    await soon(() => expect(upstream.arrivals).toHaveLength(1));
    await soon(() => expect(proxied.proxy.inFlight()).toBe(0));
    for (let i = 0; i < 5; i++) {
      socket.write(Buffer.alloc(1000));
      await sleep(5);
    }
    let response = '';
    for await (const chunk of socket) response += String(chunk);
    socket.end();
    expect([response.slice(0, 12), response.slice(-2), failed]).toEqual(['HTTP/1.1 403', 'no', undefined]);
  });

  it('refused before it is forwarded → the refusal, and the upstream hears nothing', async () => {
    const { upstream, proxied } = await stage(answerHeads(), {
      before: (_incoming, outgoing) => {
        outgoing.writeHead(401, { 'content-length': 2 }).end('no');
        return true;
      },
    });
    expect(await sendRaw(proxied.port, handshake())).toMatch(/^HTTP\/1\.1 401 [\s\S]*no$/);
    expect(upstream.arrivals).toEqual([]);
  });

  it('h2c → the upgrade is ignored, and the rest is a separate request', async () => {
    const lines = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n';
    const seen: (string | undefined)[] = [];
    const { upstream, proxied } = await stage(answerHeads(), {
      before: (incoming, outgoing) => {
        seen.push(incoming.url);
        if (incoming.url !== '/admin') return false;
        outgoing.writeHead(403, { 'content-length': 2 }).end('no');
        return true;
      },
    });
    const get = (target: string, more: string) => `GET ${target} HTTP/1.1\r\nHost: api.example\r\n${more}\r\n`;
    const bytes = get('/', lines) + get('/admin', lines) + get('/last', 'Connection: close\r\n');
    const response = await sendRaw(proxied.port, bytes);
    expect(response.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 403', 'HTTP/1.1 200']);
    expect(seen).toEqual(['/', '/admin', '/last']);
    expect(upstream.arrivals.join('')).not.toMatch(/upgrade|http2-settings|\/admin/i);
  });

  it('a WebSocket without a key → a plain response without an upgrade', async () => {
    const { upstream, proxied } = await stage(answerHeads());
    const response = await sendRaw(
      proxied.port,
      'GET / HTTP/1.1\r\nHost: api.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET /admin HTTP/1.1\r\nHost: api.example\r\n\r\n',
    );
    expect(response).toMatch(/^HTTP\/1\.1 200 /);
    expect(upstream.arrivals).toHaveLength(1);
    expect(upstream.arrivals[0]).not.toMatch(/upgrade|\/admin/i);
  });

  it('a WebSocket with a body → ignored, and the body is not served as a request', async () => {
    const head = handshake('Content-Length: 46\r\n');
    const seen: (string | undefined)[] = [];
    const body = 'GET /smuggled HTTP/1.1\r\nHost: api.example\r\n\r\n';
    const { upstream, proxied } = await stage((socket, arrived) => void (arrived.endsWith(body) && socket.write(ok)), {
      before: (incoming) => {
        seen.push(incoming.url);
        return false;
      },
    });
    const response = await sendRawFor(proxied.port, head + body, (text) => text.endsWith('ok'));
    expect(response.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
    expect(seen).toHaveLength(1);
    expect(upstream.arrivals.join('')).toContain(body);
    expect(upstream.arrivals.join('')).not.toMatch(/upgrade|101/i);
  });

  it.each(['complete', 'in pieces'])(
    'after a pending request, its head %s → the tunnel opens after its response',
    async (form) => {
      let respond = (): void => {};
      const { upstream, proxied } = await stage((socket, arrived) => {
        if (arrived.includes('/chat')) socket.write(agreed);
        else if (arrived.endsWith('\r\n\r\n')) respond = () => socket.write(ok);
      });
      const cut = form === 'complete' ? 0 : handshake().indexOf('Upgrade: websocket') + 3;
      const slow = 'GET /slow HTTP/1.1\r\nHost: api.example\r\n\r\n';
      const { socket, read } = openTunnel(proxied, slow + (cut === 0 ? handshake() : ''));
      await soon(() => expect(upstream.arrivals.join('')).toContain('/slow'));
      if (cut > 0) {
        socket.setNoDelay(true).write(handshake().slice(0, cut));
        await sleep(50);
        socket.write(handshake().slice(cut));
      }
      await sleep(20);
      expect(upstream.arrivals.join('')).not.toContain('/chat');
      respond();
      expect(await read('101')).toMatch(/^HTTP\/1\.1 200 [\s\S]*okHTTP\/1\.1 101 /);
      socket.destroy();
    },
  );

  it('CONNECT → closed, and the upstream hears nothing', async () => {
    const { upstream, proxied } = await stage(answerHeads());
    expect(await sendRaw(proxied.port, `CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n${ok}`)).toBe('');
    expect(upstream.arrivals).toEqual([]);
  });
});
