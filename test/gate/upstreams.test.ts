import { type ChildProcess, spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort, listen, stop } from '../../tools/shared/network.js';
import { makeClientCertificate } from '../support/certificate-maker.ts';
import { runCommand } from '../support/command-runs.ts';
import { useFolder } from '../support/folder.ts';
import { lastHeaders, startRecordingUpstream, useUpstream } from '../support/gate-edge.ts';
import { type OpenedGate, openGate, useGate } from '../support/gate-process.ts';
import { send } from '../support/http-client.ts';
import { needs } from '../support/programs.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { type ClientCertificate, createTestCertificates, type TestCertificates } from '../support/tls.ts';
import { soon } from './proxied.ts';

const folder = useFolder();
const provider = await useTestProvider();
let orders = await startRecordingUpstream(await findFreePort()); // it restarts there
const shop = await useUpstream();
const hangs = createServer((socket) => void socket.on('error', () => {}));
const garbage = createServer((socket) => {
  socket.on('error', () => {}).once('data', () => socket.end('\u0000garbage\r\n\r\n'));
});
afterAll(async () => {
  await orders.close();
  for (const each of [hangs, garbage]) each.close();
});
const rule = (id: string, more: object = {}): object => ({
  ...{ id, path: `/${id}/**`, access: 'open', upstream: id },
  ...more,
});
const gate = await useGate(
  provider,
  {
    issuers: { staff: { issuer: provider.issuer, audience: provider.audience } },
    upstreams: {
      orders: `http://${orders.address}`,
      shop: `http://${shop.address}`,
      hangs: `http://127.0.0.1:${await listen(hangs)}`,
      garbage: `http://127.0.0.1:${await listen(garbage)}`,
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
  { UPSTREAM_TIMEOUT: '1', CONSOLE: 'on', CONSOLE_KEY_FILE: join(folder, 'key') },
);
await gate.findLog(({ event }) => event === 'keys_fetched');
const bearer = async (claims = {}) => ['Authorization', `Bearer ${await provider.sign(claims)}`];

describe('upstreams by name', () => {
  it('each rule → its upstream; stripPrefix, X-Request-Id of the caller, and the id of the gate', async () => {
    const headers = [...(await bearer({ azp: 'app' })), 'X-Request-Id', 'caller-1'];
    const answer = await send(gate.url, '/orders/a%20b?x=1', { headers });
    expect(answer.status).toBe(200);
    expect(orders.received.at(-1)).toMatchObject({ target: '/a%20b?x=1' });
    expect(lastHeaders(orders)).toMatchObject({
      ...{ 'x-forwarded-prefix': '/orders', 'x-request-id': 'caller-1', 'x-auth-client': 'app' },
    });
    const id = answer.headers.get('x-request-id');
    expect(id).not.toBe('caller-1');
    expect(await gate.findLog((line) => line['id'] === id)).toMatchObject({
      ...{ upstream: 'orders', rule: 'orders', request_id: 'caller-1' },
    });
    expect((await send(gate.url, '/shop/')).status).toBe(200);
    expect(shop.received.at(-1)).toMatchObject({ target: '/shop/' });
    expect(lastHeaders(shop)['x-request-id']).toMatch(/^[\w-]{12,}$/);
    expect(lastHeaders(shop)).not.toHaveProperty('x-forwarded-prefix');
  });

  it.each(['/orders', '/orders/', '/orders?x'])('%s → / at the upstream', async (path) => {
    await send(gate.url, path, { headers: await bearer() });
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
    const explain = () => runCommand(['explain', '--id', id, '--admin', gate.adminUrl ?? ''], environment);
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
    const headers = await bearer();
    await orders.close();
    expect((await send(gate.url, '/orders/x', { headers })).status).toBe(502);
    expect((await send(gate.url, '/shop/y')).status).toBe(200);
    orders = await startRecordingUpstream(Number(address.split(':')[1]));
    expect((await send(gate.url, '/orders/x', { headers })).status).toBe(200);
    await gate.findLog(({ event, upstream }) => event === 'upstream_reachable' && upstream === 'orders');
  });
});

describe('an upstream over https', { ...needs('openssl') }, () => {
  let secured: TlsServer;
  let expired: TlsServer;
  let strict: ChildProcess;
  let own: OpenedGate;
  let certificates: readonly ClientCertificate[];
  let authority: TestCertificates;
  const names: unknown[] = [];
  /** Fingerprints of the client certificates, and the response that is held back. */
  const shown: unknown[] = [];
  let release = (): void => {};
  const write = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const material = (client: ClientCertificate | undefined) => ({ ...authority, ca: client?.cert ?? '' });
  const status = async (id: string, path = '') => (await send(own.url, `/${id}/${path}`)).status;
  const cause = async (id: string) => {
    const line = await own.findLog(({ event, upstream }) => event === 'upstream_unreachable' && upstream === id);
    return line['cause'];
  };

  beforeAll(async () => {
    let late: TestCertificates;
    let other: TestCertificates;
    [authority, late, other, ...certificates] = await Promise.all([
      createTestCertificates(undefined, ['inner.test']),
      createTestCertificates({ from: -2, to: -1 }),
      createTestCertificates({ from: -1, to: 2 }),
      makeClientCertificate(),
      makeClientCertificate(),
      makeClientCertificate({ from: -2, to: -1 }),
    ]);
    secured = createTlsServer({ ...material(certificates[0]), requestCert: true }, (incoming, outgoing) => {
      const socket = incoming.socket as TLSSocket;
      names.push(socket.servername);
      shown.push(socket.getPeerCertificate().fingerprint256);
      if (incoming.url?.endsWith('held')) release = () => void outgoing.end('ok');
      else if (!incoming.url?.endsWith('slow')) outgoing.end('ok');
    });
    expired = createTlsServer({ ...late, ca: undefined }, (_, outgoing) => outgoing.end('ok'));
    const [url, lateUrl] = (await Promise.all([listen(secured), listen(expired)])).map(
      (port) => `https://127.0.0.1:${port}`,
    );
    const caFile = write('ca.pem', authority.ca);
    const [first, , old] = certificates;
    const client = { certFile: write('cert.pem', first?.cert ?? ''), keyFile: write('key.pem', first?.key ?? '') };
    const past = { certFile: write('past.pem', old?.cert ?? ''), keyFile: write('past-key.pem', old?.key ?? '') };
    // Node's server refuses an expired certificate without an alert.
    const strictPort = await findFreePort();
    const files = ['-cert', write('own.pem', authority.cert), '-key', write('own-key.pem', authority.key)];
    const args = ['-accept', `127.0.0.1:${strictPort}`, ...files, '-CAfile', past.certFile];
    strict = spawn('openssl', ['s_server', ...args, '-Verify', '1', '-verify_return_error', '-www', '-quiet']);
    const upstreams = {
      named: { url, caFile, ...client, serverName: 'inner.test', timeout: 0.5 },
      address: { url, caFile, ...client },
      distrusted: { url, caFile: write('other.pem', other.ca), ...client },
      misnamed: { url, caFile, ...client, serverName: 'another.test' },
      expired: { url: lateUrl, caFile: write('late.pem', late.ca) },
      anonymous: { url, caFile },
      past: { url: `https://127.0.0.1:${strictPort}`, caFile, ...past },
    };
    const rules = Object.keys(upstreams).map((id) => ({ id, path: `/${id}/**`, access: 'open', upstream: id }));
    own = await openGate(provider, { upstreams, rules });
  });
  afterAll(async () => {
    await own?.stop();
    strict?.kill();
    await Promise.all([secured, expired].map((each) => each && stop(each)));
  });

  it('its authority, name and client certificate → 200; its own timeout', async () => {
    expect([await status('named'), await status('address')]).toEqual([200, 200]);
    expect(names.slice(-2)).toEqual(['inner.test', false]);
    expect(await status('named', 'slow')).toBe(504);
  });

  it.each([
    ['distrusted', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    ['misnamed', 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['expired', 'CERT_HAS_EXPIRED'],
    ['anonymous', 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'],
    ['past', expect.stringMatching(/^ERR_SSL_.*CERTIFICATE_EXPIRED$/)],
  ])('%s → 502, and upstream_unreachable with %s', async (id, expected) => {
    expect(await status(id)).toBe(502);
    expect(await cause(id)).toEqual(expected);
    expect((await send(own.adminUrl ?? '', '/readyz')).json).toMatchObject({
      degraded: expect.arrayContaining([`upstream ${id}`]),
    });
  });

  it('a client certificate that has expired → a warning at startup', async () => {
    const line = await own.findLog(({ event }) => event === 'tls_certificate_expired');
    expect(line).toMatchObject({ level: 'warn', upstream: 'past', fix: 'Renew its certFile' });
  });

  it('renewed files and SIGHUP → the new certificate, and requests in flight finish; unusable files → the old one, and one line', async () => {
    const [first, second] = certificates;
    const fingerprint = (client: ClientCertificate | undefined) =>
      new X509Certificate(client?.cert ?? '').fingerprint256;
    const seen = shown.length;
    const held = status('address', 'held');
    await soon(() => expect(shown).toHaveLength(seen + 1));
    write('key.pem', second?.key ?? '');
    own.signal('SIGHUP');
    const kept = await own.findLog(({ event }) => event === 'rules_kept');
    expect(kept['problem']).toContain('keyFile');
    expect(kept['problem']).not.toContain('PRIVATE');
    expect(await status('named')).toBe(200);
    write('cert.pem', second?.cert ?? '');
    secured.setSecureContext(material(second));
    own.signal('SIGHUP');
    await own.findLog(({ event, generation }) => event === 'rules_loaded' && Number(generation) > 1);
    expect([await status('named'), await status('address')]).toEqual([200, 200]);
    expect(shown.slice(-2)).toEqual([fingerprint(second), fingerprint(second)]);
    expect(shown[seen]).toBe(fingerprint(first));
    release();
    expect(await held).toBe(200);
  });

  it.each([
    [{ caFile: '/absent.pem' }, 'caFile /absent.pem of the upstream "a" cannot be used (ENOENT)'],
    [{ timeout: 0 }, '"timeout" is not valid. Write seconds, over 0 and at most 3600.'],
    [{ timeout: 3601 }, '"timeout" is not valid. Write seconds, over 0 and at most 3600.'],
    [{ caFile: import.meta.filename }, `caFile ${import.meta.filename} of the upstream "a" cannot be used`],
  ])('%j → exit 78', async (files, message) => {
    const rules = [{ id: 'a', path: '/**', access: 'open', upstream: 'a' }];
    const started = openGate(provider, { upstreams: { a: { url: 'https://a', ...files } }, rules });
    await expect(started).rejects.toMatchObject({ end: { code: 78 }, stderr: expect.stringContaining(message) });
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
