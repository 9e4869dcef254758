import { once } from 'node:events';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { createDpopClient } from '../support/dpop-client.ts';
import { lastHeaders, useUpstream } from '../support/gate-edge.ts';
import { type OpenedGate, useGate } from '../support/gate-process.ts';
import { send } from '../support/http-client.ts';
import { openService } from '../support/open-service.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { open, sendRaw } from './proxied.ts';

const client = createDpopClient();
afterAll(() => client.close());
const provider = await useTestProvider();
const upstream = await useUpstream();
upstream.answer = (_, outgoing) =>
  void outgoing.setHeader('x-upstream', 'yes').end(`echo ${upstream.received.at(-1)?.body}`);
const UPSTREAM = `http://${upstream.address}`;
const gate = await useGate(
  provider,
  {
    issuers: { staff: { issuer: provider.issuer, audience: provider.audience } },
    rules: [
      { id: 'health', path: '/healthz', access: 'open' },
      { id: 'closed', path: '/closed/**', access: 'deny' },
      { id: 'orders', path: '/orders/**', scopes: ['read:messages'] },
      { id: 'deep', path: '/deep', forward: ['authorization'] },
      { id: 'bound', path: '/bound', dpop: 'required' },
      { id: 'watched', path: '/watched', mode: 'report', scopes: ['other'] },
    ],
  },
  { UPSTREAM },
);
const token = await provider.sign({ client_id: 'shop' });

const bearer = (value: string): readonly string[] => ['Authorization', `Bearer ${value}`];

describe('portcullis gate --upstream', () => {
  it('valid token → the upstream responds; it gets the identity, and no token', async () => {
    const { status, headers, body } = await send(gate.url, '/orders/1?a=b', {
      headers: [...bearer(token), 'X_Auth_Subject', 'you', 'X-Auth-Scope', 'all'],
    });
    expect([status, headers.get('x-upstream'), body]).toEqual([200, 'yes', 'echo ']);
    expect(upstream.received.at(-1)).toMatchObject({ method: 'GET', target: '/orders/1?a=b' });
    expect(lastHeaders(upstream)).toMatchObject({
      'x-auth-client': 'shop',
      'x-auth-scope': 'read:messages',
      'x-auth-issuer': provider.issuer,
      'x-forwarded-proto': 'http',
      'x-forwarded-host': new URL(gate.url).host,
      'x-forwarded-for': '127.0.0.1',
      via: '1.1 portcullis',
    });
    for (const name of ['authorization', 'x_auth_subject']) expect(lastHeaders(upstream)).not.toHaveProperty(name);
  });

  it.each([
    ['no token', '/orders/1', [], 401],
    ['access: deny', '/closed/1', [], 403],
    ['an ambiguous path', '/closed/../healthz', [], 400],
  ] as const)('%s → refused, and the upstream hears nothing', async (_claim, path, headers, expected) => {
    const before = upstream.received.length;
    const { status } = await send(gate.url, path, { headers });
    expect(status).toBe(expected);
    expect(upstream.received.length).toBe(before);
  });

  it('an unknown expectation → 417 with a reason; the upstream gets nothing', async () => {
    const before = upstream.received.length;
    const { status, headers, body } = await send(gate.url, '/healthz', { headers: ['Expect', 'tea'] });
    expect([status, JSON.parse(body)]).toMatchObject([417, { detail: { error: 'invalid_request' } }]);
    const id = headers.get('x-request-id');
    expect(await gate.findLog((line) => line['id'] === id)).toMatchObject({
      reason: 'unmet_expectation',
      rule: 'unmatched',
    });
    expect(upstream.received.length).toBe(before);
  });

  it('a URL in the request line → its path arrives if the URL names the host of Host, else 400', async () => {
    const { host } = new URL(gate.url);
    await send(gate.url, `http://${host}/healthz?a=b`);
    expect(upstream.received.at(-1)?.target).toBe('/healthz?a=b');
    const before = upstream.received.length;
    expect((await send(gate.url, 'http://other.example/healthz')).status).toBe(400);
    expect(upstream.received.length).toBe(before);
  });

  it('forward: ["authorization"] → the upstream gets the token', async () => {
    await send(gate.url, '/deep', { headers: bearer(token) });
    expect(lastHeaders(upstream)['authorization']).toBe(`Bearer ${token}`);
  });

  it('mode: report → passes with its Authorization and without an identity', async () => {
    const { status } = await send(gate.url, '/watched', { headers: bearer(token) });
    expect(status).toBe(200);
    expect(lastHeaders(upstream)).toMatchObject({ authorization: `Bearer ${token}`, 'x-auth-subject': '' });
  });

  it('a WebSocket → authorized like any request, then forwarded', async () => {
    upstream.interceptUpgrade = (socket) => {
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\nConnection: close\r\n\r\nnever');
      return true;
    };
    const ask = (more: string): Promise<string> =>
      sendRaw(
        gate.port,
        `GET /orders/ws HTTP/1.1\r\nHost: api.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${more}\r\n`,
      );
    const before = upstream.received.length;
    expect(await ask('')).toMatch(/^HTTP\/1\.1 401 /);
    expect(upstream.received.length).toBe(before);
    expect(await ask(`Authorization: Bearer ${token}\r\n`)).toMatch(/^HTTP\/1\.1 403 [\s\S]*never$/);
    expect(lastHeaders(upstream)['x-auth-client']).toBe('shop');
  });

  it('each request → one line in the log and one in the metrics, by its rule; none is left in flight', async () => {
    const socket = open(gate.port, 'POST /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf');
    await once(socket, 'connect');
    socket.destroy();
    await vi.waitFor(async () => {
      const metrics = await gate.metrics();
      expect(metrics).toMatch(/portcullis_requests_total\{rule="orders",status="200",scheme="Bearer"/);
      expect(metrics).toMatch(/^portcullis_requests_in_flight 0$/m);
    }, 5000);
  });

  it('the upstream goes away → 502 with the reason in the log', async () => {
    const away = await openService({
      command: 'gate',
      args: ['--issuer', provider.issuer, '--audience', provider.audience, '--upstream', 'http://127.0.0.1:1'],
      environment: { NODE_EXTRA_CA_CERTS: provider.caFile },
    });
    const { status, json } = await send(away.url, '/', { headers: bearer(token) });
    const line = await away.findLog(({ event, status: logged }) => event === 'request' && logged === 502);
    await away.stop();
    expect(status).toBe(502);
    expect(json).toMatchObject({ detail: { error: 'temporarily_unavailable' } });
    expect(line).toMatchObject({ reason: 'upstream_unavailable', rule: 'all' });
  });
});

/** Opens a gate whose rules differ by host. */
const startHosts = (environment: Readonly<Record<string, string>>): Promise<OpenedGate> =>
  useGate(
    provider,
    {
      issuers: { staff: { issuer: provider.issuer, audience: provider.audience } },
      rules: [
        { id: 'public', hosts: ['public.example'], path: '/**', access: 'open' },
        { id: 'bound', hosts: ['public.example'], path: '/bound', dpop: 'required' },
        { id: 'admin', hosts: ['admin.example'], path: '/**', access: 'deny' },
        { id: 'address', hosts: ['[2001:db8::1]'], path: '/**', access: 'open' },
      ],
    },
    { UPSTREAM, ...environment },
  );
/** The status, and the hosts that the upstream saw. */
const reach = async ({ port }: OpenedGate, head: string): Promise<readonly unknown[]> => {
  const before = upstream.received.length;
  const answer = await sendRaw(port, `${head}\r\nConnection: close\r\n\r\n`);
  const seen =
    upstream.received.length === before ? [] : ['host', 'x-forwarded-host'].map((name) => lastHeaders(upstream)[name]);
  return [Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1]), ...seen];
};
const seenAs = (host: string): readonly unknown[] => [200, host, host];

describe('one host for the rule and the upstream, behind a trusted proxy', async () => {
  const trusting = await startHosts({ TRUST_PROXY: '127.0.0.0/8' });

  const viaAdmin = (...lines: readonly string[]): string =>
    ['GET / HTTP/1.1', 'Host: admin.example', ...lines].join('\r\n');

  it.each<[string, string, readonly unknown[]]>([
    ['X-Forwarded-Host', viaAdmin('X-Forwarded-Host: public.example'), seenAs('public.example')],
    [
      'the default port of https, as Traefik names a WebSocket',
      viaAdmin('X-Forwarded-Host: public.example:443', 'X-Forwarded-Proto: wss'),
      seenAs('public.example'),
    ],
    ['a dot at the end', viaAdmin('X-Forwarded-Host: public.example.:8443'), seenAs('public.example:8443')],
    ['another spelling of an address', viaAdmin('X-Forwarded-Host: [2001:DB8:0::1]'), seenAs('[2001:db8::1]')],
    ['another port', viaAdmin('X-Forwarded-Host: public.example:8443'), seenAs('public.example:8443')],
    ['no X-Forwarded-Host', 'GET / HTTP/1.1\r\nHost: Public.example', seenAs('public.example')],
    [
      'a URL in the request line with the name of Host',
      'GET http://admin.example/ HTTP/1.1\r\nHost: admin.example\r\nX-Forwarded-Host: public.example',
      seenAs('public.example'),
    ],
    [
      'Connection names X-Forwarded-Host',
      viaAdmin('Connection: X-Forwarded-Host', 'X-Forwarded-Host: public.example'),
      seenAs('public.example'),
    ],
    ['a prefix', viaAdmin('X-Forwarded-Host: public.example', 'X-Forwarded-Prefix: /v1'), seenAs('public.example')],
    [
      'X-Forwarded-Host of a denied',
      'GET / HTTP/1.1\r\nHost: public.example\r\nX-Forwarded-Host: admin.example',
      [403],
    ],
    ['two lines', viaAdmin('X-Forwarded-Host: public.example', 'X-Forwarded-Host: admin.example'), [400]],
    [
      'a list in Host, a valid X-Forwarded-Host',
      'GET / HTTP/1.1\r\nHost: a, b\r\nX-Forwarded-Host: public.example',
      [400],
    ],
    [
      'a URL in the request line with the name of X-Forwarded-Host',
      'GET http://public.example/ HTTP/1.1\r\nHost: admin.example\r\nX-Forwarded-Host: public.example',
      [400],
    ],
    ['X_Forwarded_Host', viaAdmin('X_Forwarded_Host: public.example'), [403]],
    ['Forwarded', viaAdmin('Forwarded: host=public.example'), [403]],
  ])('%s', async (_claim, head, expected) => {
    expect(await reach(trusting, head)).toEqual(expected);
  });

  it('a WebSocket → the upstream sees the host of the rule', async () => {
    const key = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';
    const head = viaAdmin('X-Forwarded-Host: public.example', 'Connection: Upgrade', 'Upgrade: websocket', key);
    await sendRaw(trusting.port, `${head}\r\n\r\n`);
    expect(lastHeaders(upstream)['host']).toBe('public.example');
  });

  it('a proof → compared with the host of the rule', async () => {
    const bound = await provider.sign({ cnf: { jkt: client.jkt } });
    const prove = (url: string, nonce?: string) =>
      send(trusting.url, '/bound', {
        headers: [
          ...['Host', 'admin.example', 'X-Forwarded-Host', 'public.example', 'X-Forwarded-Proto', 'https'],
          ...[
            'Authorization',
            `DPoP ${bound}`,
            'DPoP',
            client.prove(bound, { url, ...(nonce !== undefined && { nonce }) }),
          ],
        ],
      });
    const nonce = (await prove('https://public.example/bound')).headers.get('dpop-nonce');
    expect((await prove('https://admin.example/bound', nonce)).status).toBe(401);
    expect((await prove('https://public.example/bound', nonce)).status).toBe(200);
    expect(lastHeaders(upstream)['host']).toBe('public.example');
  });
});

describe('a peer that is not trusted', async () => {
  const gate = await startHosts({ TRUST_PROXY: '10.0.0.0/8' });
  it.each<[string, string, readonly unknown[]]>([
    ['X-Forwarded-Host', 'Host: admin.example\r\nX-Forwarded-Host: public.example', [403]],
    ['two lines', 'Host: public.example\r\nX-Forwarded-Host: a\r\nX-Forwarded-Host: b', seenAs('public.example')],
    ['malformed', 'Host: public.example\r\nX-Forwarded-Host: @\r\nX-Forwarded-Proto: ftp', seenAs('public.example')],
  ])('%s → ignored', async (_claim, lines, expected) => {
    expect(await reach(gate, `GET / HTTP/1.1\r\n${lines}`)).toEqual(expected);
  });
});
