import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort } from '../../tools/shared/network.js';
import { runProcess } from '../support/command-runs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/gate-edge.ts';
import { type GateProcess, startGate } from '../support/gate-process.ts';
import { send } from '../support/http-client.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';

const folder = mkdtempSync(join(tmpdir(), 'portcullis-upstreams-'));
let provider: TestProvider;
let gate: GateProcess;
let orders: RecordingUpstream;
let shop: RecordingUpstream;
let hangs: Server;
let garbage: Server;

const listen = async (server: Server): Promise<string> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
};

beforeAll(async () => {
  [provider, orders, shop] = await Promise.all([
    startTestProvider(),
    startRecordingUpstream(await findFreePort()), // it restarts there
    startRecordingUpstream(),
  ]);
  hangs = createServer(() => {});
  garbage = createServer((socket) => {
    socket.on('error', () => {}).once('data', () => socket.end('\u0000garbage\r\n\r\n'));
  });
  const rule = (id: string, more: object = {}): object => ({
    id,
    path: `/${id}/**`,
    access: 'open',
    upstream: id,
    ...more,
  });
  gate = await startGate(
    provider,
    {
      issuers: { staff: { issuer: provider.issuer, audience: provider.audience } },
      upstreams: {
        orders: `http://${orders.address}`,
        shop: `http://${shop.address}`,
        hangs: await listen(hangs),
        garbage: await listen(garbage),
        away: 'http://127.0.0.1:1',
      },
      rules: [
        rule('orders', { stripPrefix: '/orders', access: 'token' }),
        rule('shop', { cors: { origins: ['https://app.example'] } }),
        rule('hangs'),
        rule('garbage'),
        rule('away'),
        { id: 'literal', path: '/:id', access: 'open', upstream: 'shop' },
        { id: 'posts', path: '/posts', methods: ['POST'], access: 'deny' },
      ],
    },
    { UPSTREAM_TIMEOUT: '2', CONSOLE: 'on', CONSOLE_KEY_FILE: join(folder, 'key') },
  );
  await gate.findLog(({ event }) => event === 'keys_fetched');
});
afterAll(async () => {
  await Promise.all([gate?.stop(), orders?.close(), shop?.close()]);
  hangs?.close();
  garbage?.close();
  await provider?.close();
  rmSync(folder, { recursive: true });
});

const headerOf = (upstream: RecordingUpstream, name: string): string | undefined => {
  const { rawHeaders = [] } = upstream.received.at(-1) ?? {};
  const index = rawHeaders.findIndex((each, at) => at % 2 === 0 && each.toLowerCase() === name);
  return index < 0 ? undefined : rawHeaders[index + 1];
};

describe('upstreams by name', () => {
  it('each rule → its upstream; stripPrefix, X-Request-Id of the caller, and the id of the gate', async () => {
    const token = await provider.sign({ azp: 'app' });
    const headers = ['Authorization', `Bearer ${token}`, 'X-Request-Id', 'caller-1'];
    const answer = await send(gate.url, '/orders/a%20b?x=1', { headers });
    expect(answer.status).toBe(200);
    expect(orders.received.at(-1)).toMatchObject({ target: '/a%20b?x=1' });
    expect(headerOf(orders, 'x-forwarded-prefix')).toBe('/orders');
    expect(headerOf(orders, 'x-request-id')).toBe('caller-1');
    expect(headerOf(orders, 'x-auth-client')).toBe('app');
    const id = answer.headers.get('x-request-id');
    expect(id).not.toBe('caller-1');
    expect(await gate.findLog((line) => line['id'] === id)).toMatchObject({
      ...{ upstream: 'orders', rule: 'orders', request_id: 'caller-1' },
    });
    expect((await send(gate.url, '/shop/')).status).toBe(200);
    expect(shop.received.at(-1)).toMatchObject({ target: '/shop/' });
    expect(headerOf(shop, 'x-request-id')).toMatch(/^[\w-]{12,}$/);
    expect(headerOf(shop, 'x-forwarded-prefix')).toBeUndefined();
  });

  it.each(['/orders', '/orders/', '/orders?x'])('%s → / at the upstream', async (path) => {
    const token = await provider.sign({});
    await send(gate.url, path, { headers: ['Authorization', `Bearer ${token}`] });
    expect(orders.received.at(-1)?.target).toBe(path.includes('?') ? '/?x' : '/');
  });

  it('preflight of a listed origin → 204 from the gate; the response → with the origin', async () => {
    const before = shop.received.length;
    const origin = ['Origin', 'https://app.example'];
    const preflight = await send(gate.url, '/shop/x', {
      method: 'OPTIONS',
      headers: [...origin, 'Access-Control-Request-Method', 'PATCH'],
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-methods')).toBe('PATCH');
    expect(shop.received.length).toBe(before);
    const answer = await send(gate.url, '/shop/x', { headers: origin });
    expect(answer.headers.get('access-control-allow-origin')).toBe('https://app.example');
    expect(answer.headers.get('vary')).toBe('Origin');
  });

  it('a placeholder of another router → a warning at load', async () => {
    const line = await gate.findLog(({ event }) => event === 'rules_doubtful');
    expect(line['problem']).toBe('":id" in the rule "literal" is a literal. Write {name} or * for any one segment.');
  });

  it('refusals without a rule → host and path in the log, without the query', async () => {
    const answer = await send(gate.url, '/none?token=x', { headers: ['Host', 'api.example'] });
    expect(answer.status).toBe(403);
    const line = await gate.findLog(({ id }) => id === answer.headers.get('x-request-id'));
    expect(line).toMatchObject({ reason: 'no_rule', method: 'GET', host: 'api.example', path: '/none' });
    expect(JSON.stringify(line)).not.toContain('token=x');
  });

  it('explain --id → the target, and the rules that nearly matched', async () => {
    const { headers } = await send(gate.url, '/posts?token=x', { headers: ['Host', 'api.example'] });
    const id = headers.get('x-request-id') ?? '';
    const environment = { CONSOLE_KEY_FILE: join(folder, 'key') };
    const explain = () => runProcess(['explain', '--id', id, '--admin', gate.adminUrl ?? ''], environment);
    await expect.poll(async () => (await explain()).stdout, { timeout: 10_000 }).toContain('GET api.example/posts');
    const { stdout } = await explain();
    expect(stdout).toContain('nearly matched: posts (it is for POST)');
    expect(stdout).not.toContain('token=x');
  });

  it('an unreachable upstream → a warning at startup, degraded in /readyz, and a metric', async () => {
    await gate.findLog(
      ({ event, level, upstream }) => event === 'upstream_unreachable' && level === 'warn' && upstream === 'away',
    );
    const ready = await send(gate.adminUrl ?? '', '/readyz');
    expect(ready.status).toBe(200);
    expect(ready.json).toMatchObject({
      checks: { 'upstream away': 'unreachable', 'upstream orders': 'ok' },
      degraded: expect.arrayContaining(['upstream away']),
    });
    expect(await gate.metrics()).toMatch(/^portcullis_upstream_up\{upstream="away"\} 0$/m);
    expect(await gate.metrics()).toMatch(/^portcullis_upstream_in_flight\{upstream="orders"\} 0$/m);
    expect(await gate.metrics()).toMatch(/^portcullis_upstream_seconds_count\{upstream="orders"\} [1-9]/m);
    expect(await gate.metrics()).toMatch(/^portcullis_request_seconds_count\{rule="[\w-]+"\} [1-9]/m);
    expect(await gate.metrics()).toMatch(
      /^portcullis_build_info\{version="[\d.]+[^"]*",commit="([0-9a-f]{40})?"\} 1$/m,
    );
  });
});

describe('faults of one upstream', () => {
  it.each([
    ['hangs', '/hangs/x', 504],
    ['responds with garbage', '/garbage/x', 502],
    ['is unreachable', '/away/x', 502],
  ])('one %s → requests for another lose nothing', async (_what, path, status) => {
    const failing = Array.from({ length: 20 }, () => send(gate.url, path));
    const before = shop.received.length;
    const answers = await Promise.all(Array.from({ length: 50 }, () => send(gate.url, '/shop/y')));
    expect(answers.map((answer) => answer.status).filter((each) => each !== 200)).toEqual([]);
    expect(shop.received.length).toBe(before + 50);
    expect(new Set((await Promise.all(failing)).map((answer) => answer.status))).toEqual(new Set([status]));
  });

  it('one restarts → requests for another lose nothing, and its own succeed afterwards', async () => {
    const { address } = orders;
    const token = await provider.sign({});
    const headers = ['Authorization', `Bearer ${token}`];
    await orders.close();
    expect((await send(gate.url, '/orders/x', { headers })).status).toBe(502);
    expect((await send(gate.url, '/shop/y')).status).toBe(200);
    orders = await startRecordingUpstream(Number(address.split(':')[1]));
    expect((await send(gate.url, '/orders/x', { headers })).status).toBe(200);
    await gate.findLog(({ event, upstream }) => event === 'upstream_reachable' && upstream === 'orders');
  });
});

describe('reload', () => {
  it('no upstreams anymore → the old rules stay, and the line says why', async () => {
    await gate.writeRules({ rules: [{ id: 'all', path: '/**', access: 'open' }] });
    gate.signal('SIGHUP');
    const line = await gate.findLog(({ event }) => event === 'rules_kept');
    expect(String(line['problem'])).toContain('"upstreams" would change the mode of the gate');
    expect((await send(gate.url, '/shop/y')).status).toBe(200);
  });

  it('a folder with other upstreams → requests go there, and in-flight ones finish', async () => {
    let finish = (): void => {};
    shop.answer = (_incoming, outgoing) => {
      finish = () => void outgoing.end('old');
    };
    const pending = send(gate.url, '/shop/slow');
    await expect.poll(() => shop.received.at(-1)?.target).toBe('/shop/slow');
    await gate.replaceRules((path) => {
      mkdirSync(path);
      writeFileSync(`${path}/a.json`, JSON.stringify({ upstreams: { shop: `http://${orders.address}` } }));
      const rules = [{ id: 'shop-all', path: '/shop/**', access: 'open', upstream: 'shop' }];
      writeFileSync(`${path}/b.json`, JSON.stringify({ rules }));
    });
    gate.signal('SIGHUP');
    await gate.findLog(({ event, generation }) => event === 'rules_loaded' && Number(generation) > 1);
    expect((await send(gate.url, '/shop/new')).status).toBe(200);
    expect(orders.received.at(-1)?.target).toBe('/shop/new');
    finish();
    expect((await pending).body).toBe('old');
  });
});
