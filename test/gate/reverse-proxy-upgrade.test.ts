import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import {
  answerHeads,
  flood,
  keep,
  ok,
  type Proxied,
  type Respond,
  sendRaw,
  sendRawFor,
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

async function openTunnel(
  proxied: Proxied,
  first = '',
): Promise<{ readonly socket: Socket; read(text: string): Promise<string> }> {
  const socket = connect(proxied.port, '127.0.0.1').setEncoding('latin1');
  socket.on('error', () => {});
  let seen = '';
  socket.on('data', (chunk) => {
    seen += String(chunk);
  });
  socket.write(handshake() + first);
  return {
    socket,
    async read(text) {
      await vi.waitFor(() => expect(seen).toContain(text), 20_000);
      return seen;
    },
  };
}

describe('WebSocket', () => {
  it('agreed → bytes go both ways, also those sent along with the handshake', async () => {
    const { upstream, proxied } = await stage(echo, { identity: { names: ['X-Auth-Subject'], values: ['me'] } });
    const tunnel = await openTunnel(proxied, 'first');
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
    await vi.waitFor(() => expect(upstream.sockets.size).toBe(0), 20_000);
    await vi.waitFor(() => expect(proxied.proxy.inFlight()).toBe(0), 20_000);
  });

  it('header values outside ASCII → their bytes unchanged', async () => {
    const named = agreed.replace('\r\n\r\n', '\r\nX-Name: \xe9\r\n\r\n');
    const { proxied } = await stage((socket) => void socket.write(Buffer.from(named, 'latin1')));
    const tunnel = await openTunnel(proxied);
    expect(await tunnel.read('\r\n\r\n')).toContain('\r\nX-Name: \xe9\r\n');
    tunnel.socket.destroy();
  });

  it('the upstream ends it → the client sees the end', async () => {
    const { upstream, proxied } = await stage(echo);
    const tunnel = await openTunnel(proxied);
    await tunnel.read('\r\n\r\n');
    const closed = once(tunnel.socket, 'close');
    for (const socket of upstream.sockets) socket.end();
    await closed;
    await vi.waitFor(() => expect(proxied.proxy.inFlight()).toBe(0), 20_000);
  });

  it('megabytes each way → all arrive, in order', async () => {
    const { proxied } = await stage((socket, arrived) => {
      if (!arrived.endsWith('\r\n\r\n')) return;
      socket.removeAllListeners('data');
      socket.write(agreed);
      socket.pipe(socket);
    });
    const socket = connect(proxied.port, '127.0.0.1');
    socket.write(handshake());
    await once(socket, 'data');
    const sent = randomBytes(8 * 1024 * 1024);
    const received: Buffer[] = [];
    let length = 0;
    socket.on('data', (chunk) => {
      received.push(chunk);
      length += chunk.length;
    });
    socket.write(sent);
    await vi.waitFor(() => expect(length).toBe(sent.length), 20_000);
    expect(Buffer.concat(received).equals(sent)).toBe(true);
    socket.destroy();
  });

  it('an upstream that sends megabytes and closes, a client that reads later → all arrive, then the end', async () => {
    const sent = randomBytes(8 * 1024 * 1024);
    const { proxied } = await stage((socket, arrived) => {
      if (!arrived.endsWith('\r\n\r\n')) return;
      socket.write(agreed);
      socket.end(sent);
    });
    const socket = connect(proxied.port, '127.0.0.1');
    socket.write(handshake());
    const received: Buffer[] = [];
    socket.on('data', (chunk) => {
      received.push(chunk);
      // Slower than the upstream, so that the gate has bytes to send when the upstream closes.
      socket.pause();
      setTimeout(() => socket.resume(), 2);
    });
    await once(socket, 'close');
    const bytes = Buffer.concat(received);
    expect(bytes.length).toBe(agreed.length + sent.length);
    expect(bytes.subarray(-sent.length).equals(sent)).toBe(true);
  });

  it('a client that sends megabytes and closes, an upstream that reads later → all arrive', async () => {
    const sent = randomBytes(8 * 1024 * 1024);
    let arrivedBytes = 0;
    const { upstream, proxied } = await stage((socket, arrived) => {
      if (!arrived.endsWith('\r\n\r\n')) return;
      socket.removeAllListeners('data');
      socket.write(agreed);
      socket.on('data', (chunk) => {
        arrivedBytes += chunk.length;
        socket.pause();
        setTimeout(() => socket.resume(), 2);
      });
    });
    const socket = connect(proxied.port, '127.0.0.1');
    socket.write(handshake());
    await once(socket, 'data');
    socket.end(sent);
    await vi.waitFor(() => expect(upstream.sockets.size).toBe(0), 20_000);
    expect(arrivedBytes).toBe(sent.length);
  });

  it('a client that takes no byte for the time limit → closed, the upstream too', async () => {
    const { upstream, proxied } = await stage(
      (socket, arrived) => {
        if (!arrived.endsWith('\r\n\r\n')) return;
        socket.write(agreed);
        flood(socket, Buffer.alloc(65_536));
      },
      { unreadTimeout: 1 },
    );
    const socket = connect(proxied.port, '127.0.0.1').on('error', () => {});
    socket.pause();
    socket.write(handshake());
    await vi.waitFor(() => expect(upstream.arrivals).toHaveLength(1), 20_000);
    await vi.waitFor(() => expect(upstream.sockets.size).toBe(0), 20_000);
    expect(proxied.proxy.inFlight()).toBe(0);
    socket.destroy();
  });

  it('a tunnel that is idle for its time limit → closed at both ends; one with traffic stays', {}, async () => {
    const { upstream, proxied } = await stage(echo, { tunnelTimeout: 1 });
    const [idle, busy] = [await openTunnel(proxied), await openTunnel(proxied)];
    await Promise.all([idle.read('\r\n\r\n'), busy.read('\r\n\r\n')]);
    const traffic = setInterval(() => busy.socket.write('ping'), 100);
    await once(idle.socket, 'close');
    expect(busy.socket.closed).toBe(false);
    await vi.waitFor(() => expect(upstream.sockets.size).toBe(1), 20_000);
    clearInterval(traffic);
    await once(busy.socket, 'close');
    await vi.waitFor(() => expect(proxied.proxy.inFlight()).toBe(0), 20_000);
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
      const socket = connect({ port: proxied.port, host: '127.0.0.1', allowHalfOpen: true }).setEncoding('latin1');
      socket.on('error', () => {});
      let seen = '';
      socket.on('data', (chunk) => {
        seen += String(chunk);
      });
      socket.write(handshake());
      await vi.waitFor(() => expect(seen).toContain('101'), 20_000);
      if (side === 'client') socket.end('last of the client');
      await vi.waitFor(() => expect(proxied.proxy.inFlight()).toBe(0), 20_000);
      expect(seen + upstream.arrivals.join('')).toContain(`last of the ${side}`);
      // The side that has not closed notices it when it writes.
      const other = side === 'client' ? [...upstream.sockets][0] : socket;
      await vi.waitFor(() => {
        other?.write('x');
        expect(other?.destroyed).toBe(true);
      }, 20_000);
    },
  );

  it.each([
    ['an upstream that takes no byte', 'upstream', 0],
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
      { unreadTimeout: 1 },
    );
    const socket = connect(proxied.port, '127.0.0.1').on('error', () => {});
    socket.write(handshake());
    if (reader === 'upstream') socket.once('data', () => send(socket));
    else socket.pause();
    await vi.waitFor(() => expect(upstream.arrivals).toHaveLength(1), 20_000);
    const traffic = interval > 0 && setInterval(() => socket.write('ping'), interval);
    await vi.waitFor(() => expect(proxied.proxy.inFlight()).toBe(0), 20_000);
    if (traffic !== false) clearInterval(traffic);
    // Kernel buffers of four sockets.
    expect(readSent()).toBeLessThan(64 * 1024 * 1024);
    for (const each of upstream.sockets) each.destroy();
    socket.destroy();
  });

  it('the listener closes → tunnels end after the grace', async () => {
    const upstream = keep(await startRawUpstream(echo));
    const proxied = await startProxied({ upstream: upstream.url });
    const tunnel = await openTunnel(proxied);
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
    await vi.waitFor(() => expect(proxied.proxy.inFlight()).toBe(0), 20_000);
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
    await vi.waitFor(() => expect(upstream.sockets.size).toBe(0), 20_000);
  });

  it('200 that goes on, with pauses below the time limit → not cut', async () => {
    const { proxied } = await stage(
      (socket) => {
        socket.write(head200);
        for (const at of [1, 2, 3]) setTimeout(() => socket.write('3\r\ndef\r\n'), at * 400);
        setTimeout(() => socket.end('0\r\n\r\n'), 1600);
      },
      { timeout: 1 },
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
        { unreadTimeout: 1, timeout: 3 },
      );
      const socket = connect(proxied.port, '127.0.0.1').on('error', () => {});
      socket.pause();
      socket.write(handshake());
      await vi.waitFor(() => expect(upstream.arrivals).toHaveLength(1), 20_000);
      await vi.waitFor(() => expect(upstream.sockets.size).toBe(0), 20_000);
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
    const socket = connect({ port: proxied.port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {});
    socket.write(handshake());
    await vi.waitFor(() => expect(upstream.arrivals.join('')).toContain('/chat'), 20_000);
    if (bytes !== '') await once(socket, 'data');
    socket.end();
    await vi.waitFor(() => expect(upstream.sockets.size).toBe(0), 20_000);
    expect(proxied.proxy.inFlight()).toBe(0);
    socket.destroy();
  });

  it('refused, and the client still sends for the tunnel before it reads → it gets the response, and then the end', async () => {
    const { upstream, proxied } = await stage((socket) => {
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno');
    });
    const socket = connect({ port: proxied.port, host: '127.0.0.1', allowHalfOpen: true }).pause();
    let failed: Error | undefined;
    socket.on('error', (error) => {
      failed = error;
    });
    socket.write(handshake());
    await vi.waitFor(() => expect(upstream.arrivals).toHaveLength(1), 20_000);
    await vi.waitFor(() => expect(proxied.proxy.inFlight()).toBe(0), 20_000);
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

  it.each([
    ['h2c', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n'],
    ['TLS', 'Connection: Upgrade\r\nUpgrade: TLS/1.0\r\n'],
    ['two protocols', 'Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n'],
  ])('%s → the upgrade is ignored, and the rest is a separate request', async (_name, lines) => {
    const seen: (string | undefined)[] = [];
    const { upstream, proxied } = await stage(answerHeads(), {
      before: (incoming, outgoing) => {
        seen.push(incoming.url);
        if (incoming.url !== '/admin') return false;
        outgoing.writeHead(403, { 'content-length': 2 }).end('no');
        return true;
      },
    });
    const request = (target: string, more: string): string =>
      `GET ${target} HTTP/1.1\r\nHost: api.example\r\n${more}\r\n`;
    const response = await sendRaw(
      proxied.port,
      request('/', lines) + request('/admin', lines) + request('/last', 'Connection: close\r\n'),
    );
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

  it.each([
    ['a WebSocket', `${handshake('Content-Length: 46\r\n')}`],
    [
      'h2c',
      'POST / HTTP/1.1\r\nHost: api.example\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 46\r\n\r\n',
    ],
  ])('%s with a body → ignored, and the body is not served as a request', async (_name, head) => {
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

  it('after a pending request → the tunnel opens after its response', async () => {
    const { proxied } = await stage((socket, arrived) => {
      if (arrived.includes('/chat')) socket.write(agreed);
      else if (arrived.endsWith('\r\n\r\n')) setTimeout(() => socket.write(ok), 50);
    });
    const bytes = `GET /slow HTTP/1.1\r\nHost: api.example\r\n\r\n${handshake()}`;
    const response = await sendRawFor(proxied.port, bytes, (seen) => seen.includes('101'));
    expect(response).toMatch(/^HTTP\/1\.1 200 [\s\S]*okHTTP\/1\.1 101 /);
  });

  it('after a pending request, its head in pieces → the tunnel opens after its response', async () => {
    let respond = (): void => {};
    const { upstream, proxied } = await stage((socket, arrived) => {
      if (arrived.includes('/chat')) socket.write(agreed);
      else if (arrived.endsWith('\r\n\r\n')) respond = () => socket.write(ok);
    });
    const socket = connect(proxied.port, '127.0.0.1').setNoDelay(true).setEncoding('latin1');
    const cut = handshake().indexOf('Upgrade: websocket') + 3;
    socket.write(`GET /slow HTTP/1.1\r\nHost: api.example\r\n\r\n`);
    await vi.waitFor(() => expect(upstream.arrivals.join('')).toContain('/slow'), 20_000);
    let seen = '';
    socket.on('data', (bytes) => {
      seen += bytes;
    });
    socket.write(handshake().slice(0, cut));
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.write(handshake().slice(cut));
    expect(upstream.arrivals.join('')).not.toContain('/chat');
    respond();
    await vi.waitFor(() => expect(seen).toMatch(/^HTTP\/1\.1 200 [\s\S]*okHTTP\/1\.1 101 /), 20_000);
    socket.destroy();
  });

  it('CONNECT → closed, and the upstream hears nothing', async () => {
    const { upstream, proxied } = await stage(answerHeads());
    expect(await sendRaw(proxied.port, `CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n${ok}`)).toBe('');
    expect(upstream.arrivals).toEqual([]);
  });
});
