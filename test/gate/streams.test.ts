import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { listen, stop } from '../../tools/shared/network.js';
import { useFolder } from '../support/folder.ts';
import { openGate, useGate } from '../support/gate-process.ts';
import { sendLogout } from '../support/logout.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { open, soon } from './proxied.ts';

const now = (): number => Date.now() / 1000;
const provider = await useTestProvider();
const upstream = await startUpstream();
afterAll(() => upstream.close());

const rule = (id: string, more: object = {}) => ({ id, path: `/${id}/**`, ...more });
const rules = {
  issuers: { idp: { issuer: provider.issuer, audience: provider.audience } },
  rules: [
    rule('token'),
    rule('revocation', { streams: 'end-with-revocation' }),
    rule('outlive', { streams: 'outlive-token' }),
    rule('report', { mode: 'report' }),
    rule('mcp', { mcp: { tools: { '*': {} } } }),
  ],
};
const settings = { LOGOUT_CLIENTS: 'app', UPSTREAM: upstream.url, CLOCK_TOLERANCE: '0' };
const gate = await useGate(provider, rules, settings);
afterEach(() => {
  upstream.held = undefined;
});

/** An upstream that keeps every stream open; `last` is the newest response, `held` awaits before each head. */
async function startUpstream() {
  const server = createServer();
  const sockets = new WebSocketServer({ noServer: true });
  const state = {
    url: '',
    held: undefined as Promise<unknown> | undefined,
    arrived: 0,
    last: undefined as ServerResponse | undefined,
    sockets,
    async close() {
      for (const each of sockets.clients) each.terminate();
      await stop(server);
    },
  };
  server.on('request', async (incoming: IncomingMessage, outgoing) => {
    incoming.resume();
    state.arrived++;
    state.last = outgoing;
    await state.held;
    const query = new URL(incoming.url ?? '', 'http://a').searchParams;
    const more = Object.fromEntries([...query].filter(([name]) => name.includes('-')));
    outgoing.writeHead(200, { 'content-type': 'Text/Event-Stream; charset=utf-8', ...more });
    outgoing.write(query.get('first') ?? 'data: 1\n\n');
  });
  server.on('upgrade', async (incoming, socket, head) => {
    state.arrived++;
    await state.held;
    sockets.handleUpgrade(incoming, socket, head, (each) => each.on('message', (data) => each.send(data)));
  });
  state.url = `http://127.0.0.1:${await listen(server)}`;
  return state;
}

/** Lets the upstream hold its heads until the function that is returned is called. */
function hold(): () => void {
  let release = (): void => {};
  upstream.held = new Promise<void>((resolve) => {
    release = resolve;
  });
  return release;
}

let sessions = 0;
const token = (claims: object = {}) => provider.sign({ sub: 'ann', sid: `s${++sessions}`, ...claims });

/** Ends the session of the last token. */
const logOut = async (sid = `s${sessions}`) => expect(await sendLogout(provider, gate, sid)).toBe(200);

async function openSocket(rule: string, value: string): Promise<WebSocket> {
  const socket = new WebSocket(`${gate.url.replace('http', 'ws')}/${rule}/chat`, {
    headers: { authorization: `Bearer ${value}` },
  });
  onTestFinished(() => socket.terminate());
  socket.on('error', () => {});
  await once(socket, 'open');
  socket.send('hello');
  expect(String((await once(socket, 'message'))[0])).toBe('hello');
  return socket;
}

/** Sends a request for an event stream, and waits for its first bytes. `all` resolves once the connection is closed. */
async function openStream(
  target: string,
  value: string,
  { version = '1.1', method = 'GET', body = '', port = gate.port } = {},
) {
  const length = body === '' ? '' : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  const socket = open(
    port,
    `${method} ${target} HTTP/${version}\r\nHost: api.example\r\nAuthorization: Bearer ${value}\r\n${length}Connection: close\r\n\r\n${body}`,
  );
  onTestFinished(() => void socket.destroy());
  let seen = '';
  socket.on('data', (text) => (seen += String(text)));
  const all = once(socket, 'close').then(() => seen);
  await soon(() => expect(seen).toMatch(/\r\n\r\n./));
  return { socket, seen: () => seen, all };
}

const lastLog = (rule: string) => gate.logs.findLast((line) => line['event'] === 'request' && line['rule'] === rule);

describe('a tunnel', () => {
  it.each([
    ['token', { exp: () => Math.floor(now()) + 2 }, 'expired'],
    ['token', {}, 'revoked'],
    ['revocation', {}, 'revoked'],
  ])('rule %s, %j → closed on both sides: %s', async (rule, claims: { exp?: () => number }, cause) => {
    const countRevoked = async (): Promise<number> =>
      Number(/streams_ended_total\{cause="revoked"\} (\d+)/.exec(await gate.metrics())?.[1]);
    const before = await countRevoked();
    const exp = claims.exp?.() ?? Math.floor(now()) + 60;
    const socket = await openSocket(rule, await token({ exp }));
    const closed = once(socket, 'close'); // it may close before the logout has its response
    if (cause === 'revoked') await logOut();
    await closed;
    if (cause === 'expired') expect(now()).toBeGreaterThanOrEqual(exp);
    await soon(() => expect(upstream.sockets.clients.size).toBe(0));
    await soon(() => expect(lastLog(rule)).toMatchObject({ status: 101, ended: cause }));
    expect((await countRevoked()) - before).toBe(cause === 'revoked' ? 1 : 0);
  });

  it.each([
    ['revoked', ['outlive', 'report']],
    ['expired', ['outlive', 'revocation']],
  ])('%s → under the rules %j it stays open', async (cause, ids) => {
    const value = await token({ exp: Math.floor(now()) + (cause === 'expired' ? 3 : 60) });
    const sockets = await Promise.all(ids.map((rule) => openSocket(rule, value)));
    const closed = once(await openSocket('token', value), 'close');
    if (cause === 'revoked') await logOut();
    await closed;
    for (const socket of sockets) {
      socket.send('still');
      expect(String((await once(socket, 'message'))[0])).toBe('still');
    }
  });

  it('token that ends between the handshake and the 101 → 401 with a challenge, and the upstream is closed', async () => {
    const release = hold();
    const before = upstream.arrived;
    const socket = new WebSocket(`${gate.url.replace('http', 'ws')}/token/chat`, {
      headers: { authorization: `Bearer ${await token()}` },
    });
    onTestFinished(() => socket.terminate());
    const response = once(
      socket.on('error', () => {}),
      'unexpected-response',
    );
    await soon(() => expect(upstream.arrived).toBe(before + 1));
    await logOut();
    release();
    const [, incoming] = (await response) as [unknown, IncomingMessage];
    expect(incoming.statusCode).toBe(401);
    expect(incoming.headers['www-authenticate']).toContain('error="invalid_token"');
    await soon(() => expect(upstream.sockets.clients.size).toBe(0));
    await soon(() => expect(lastLog('token')).toMatchObject({ status: 401, reason: 'revoked_token' }));
  });

  it('many tunnels of one session → all closed, tunnels of another session stay', async () => {
    const [many, other] = [await token(), await provider.sign({ sub: 'bob', sid: 'other' })];
    const sockets = await Promise.all(Array.from({ length: 50 }, () => openSocket('token', many)));
    const kept = await openSocket('token', other);
    const closed = Promise.all(sockets.map((socket) => once(socket, 'close')));
    await logOut();
    await closed;
    kept.send('still');
    expect(String((await once(kept, 'message'))[0])).toBe('still');
  });
});

describe('an event stream', () => {
  it.each(['expired', 'revoked'])(
    'between two events, %s → the last chunk, at once; the upstream is closed',
    async (cause) => {
      const stream = await openStream(
        '/token/events',
        await token({ exp: Math.floor(now()) + (cause === 'expired' ? 2 : 60) }),
      );
      if (cause === 'revoked') await logOut();
      expect(await stream.all).toMatch(/\r\n\r\n9\r\ndata: 1\n\n\r\n0\r\n\r\n$/);
      await soon(() => expect(upstream.last?.closed).toBe(true));
      await soon(() => expect(lastLog('token')).toMatchObject({ status: 200, ended: cause }));
    },
  );

  it('within an event → ends after it, and nothing of the next one is sent', async () => {
    const stream = await openStream('/token/events?first=data:+1', await token());
    await logOut();
    await sleep(50);
    upstream.last?.write(' and 2\r');
    await sleep(20);
    upstream.last?.write('\n\r\ndata: secret\n\n');
    const all = await stream.all;
    expect(all).toContain(' and 2\r');
    expect(all).not.toContain('secret');
    expect(all).toMatch(/0\r\n\r\n$/);
  });

  it('an event without an end → still ends with the last chunk', async () => {
    const stream = await openStream('/token/events?first=data:+1', await token());
    const more = setInterval(() => upstream.last?.write('x'.repeat(1000)), 5);
    await logOut();
    const all = await stream.all;
    clearInterval(more);
    expect(all).toMatch(/\r\n0\r\n\r\n$/);
  });

  it('compressed → ends at once', async () => {
    const stream = await openStream('/token/events?content-encoding=gzip', await token());
    upstream.last?.write(gzipSync('data: 1').subarray(0, 10));
    await logOut();
    expect(await stream.all).toMatch(/0\r\n\r\n$/);
    await soon(() => expect(upstream.last?.closed).toBe(true));
  });

  it('with a Content-Length → the connection is closed', async () => {
    const stream = await openStream('/token/events?content-length=100', await token());
    await logOut();
    expect(await stream.all).toMatch(/Content-Length: 100\r\n[\s\S]*\r\n\r\ndata: 1\n\n$/i);
  });

  it('HTTP/1.0 → ends with the connection', async () => {
    const stream = await openStream('/token/events', await token(), { version: '1.0' });
    await logOut();
    expect(await stream.all).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\ndata: 1\n\n$/);
  });

  it('a client that does not read → ends, and the upstream is closed', async () => {
    const stream = await openStream('/token/events', await token());
    stream.socket.pause();
    const write = (): void => {
      while (upstream.last?.write(`data: ${'x'.repeat(65_536)}\n\n`) === true);
    };
    write();
    await sleep(50);
    await logOut();
    await soon(() => expect(upstream.last?.closed).toBe(true));
  });

  it('revoked while the upstream holds the head → 401 for a stream, the response for all else', async () => {
    for (const [target, status] of [
      ['/token/events', 401],
      ['/token/page?content-type=text/plain', 200],
    ] as const) {
      const release = hold();
      const before = upstream.arrived;
      const stream = openStream(target, await token());
      await soon(() => expect(upstream.arrived).toBe(before + 1));
      await logOut();
      release();
      expect((await stream).seen()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    }
  });

  it('the response to a POST at a rule with mcp → ends with revocation only; a GET with its token', async () => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list' } });
    const exp = Math.floor(now()) + 2;
    const post = await openStream('/mcp/', await token({ exp }), { method: 'POST', body });
    const session = `s${sessions}`;
    const get = await openStream('/mcp/', await token({ exp }));
    await get.all;
    await sleep(50);
    expect(post.seen()).not.toMatch(/\r\n0\r\n\r\n$/);
    await logOut(session);
    expect(await post.all).toMatch(/\r\n0\r\n\r\n$/);
  });
});

describe('an opaque token whose introspection gets another secret', async () => {
  const file = join(useFolder(), 'secret');
  const state = { secret: 'first', isActive: true, asked: 0, held: undefined as Promise<unknown> | undefined };
  writeFileSync(file, state.secret);
  provider.serve('/introspect', async (response) => {
    const known = `Basic ${Buffer.from(`gate:${state.secret}`).toString('base64')}`;
    const status = response.req.headers.authorization === known ? 200 : 401;
    state.asked++;
    await state.held;
    response.writeHead(status, { 'content-type': 'application/json' });
    const claims = { iss: provider.issuer, aud: provider.audience, sub: 'ann', exp: Math.floor(now()) + 300 };
    response.end(JSON.stringify(state.isActive ? { active: true, ...claims } : { active: false }));
  });
  const introspection = {
    ...{ endpoint: `${provider.issuer}introspect`, clientId: 'gate', clientSecretFile: file, maxSeconds: 1 },
  };
  const own = await useGate(
    provider,
    {
      issuers: { idp: { issuer: provider.issuer, audience: provider.audience, introspection } },
      rules: [rule('token')],
    },
    { UPSTREAM: upstream.url },
  );
  const replaceSecret = async (secret: string): Promise<void> => {
    const loads = () => own.logs.filter(({ event }) => event === 'rules_loaded').length;
    const before = loads();
    writeFileSync(file, secret);
    own.signal('SIGHUP');
    await soon(() => expect(loads()).toBe(before + 1));
    state.secret = secret;
  };

  it('while a request awaits it → 200', async () => {
    const asked = state.asked;
    let release = (): void => {};
    state.held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const stream = openStream('/token/events', 'opaque-1', { port: own.port });
    await soon(() => expect(state.asked).toBe(asked + 1));
    await replaceSecret('second');
    release();
    expect((await stream).seen()).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('while a stream is open → it ends once the token is not active', async () => {
    const stream = await openStream('/token/events', 'opaque-2', { port: own.port });
    await replaceSecret('third');
    state.isActive = false;
    expect(await stream.all).toMatch(/\r\n0\r\n\r\n$/);
  });
});

it('the process ends → before its grace is over, 504 for what has no response, and the end of event streams', async () => {
  const ending = await openGate(provider, rules, settings);
  const value = await token();
  const streams = await Promise.all(
    ['token', 'outlive'].map((id) => openStream(`/${id}/a`, value, { port: ending.port })),
  );
  onTestFinished(hold());
  const before = upstream.arrived;
  const waiting = open(ending.port, `GET /token/b HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${value}\r\n\r\n`);
  await soon(() => expect(upstream.arrived).toBe(before + 1));
  const { setTimeout } = globalThis;
  const shortened = vi
    .spyOn(globalThis, 'setTimeout')
    .mockImplementation(
      Object.assign(
        (run: () => void, milliseconds?: number) => setTimeout(run, milliseconds === 8000 ? 0 : milliseconds),
        setTimeout,
      ),
    );
  onTestFinished(() => shortened.mockRestore());
  const stopped = ending.stop();
  expect([await text(waiting), await Promise.all(streams.map(({ all }) => all)), await stopped]).toEqual([
    expect.stringMatching(/^HTTP\/1\.1 504 /),
    streams.map(() => expect.stringMatching(/data: 1\n\n\r\n0\r\n\r\n$/)),
    0,
  ]);
});
