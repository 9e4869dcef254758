import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { listen, stop } from '../../tools/shared/network.js';
import { createDpopClient } from '../support/dpop-client.ts';
import { useFolder } from '../support/folder.ts';
import { gateEdgeNames, lastLines, startGateEdge, useUpstream } from '../support/gate-edge.ts';
import { openGate, useGate } from '../support/gate-process.ts';
import { type Answer, type RequestOptions, send } from '../support/http-client.ts';
import { passStart } from '../support/pass-start.ts';
import { needs } from '../support/programs.ts';
import { edges, type ProxyServer, startEdge } from '../support/proxy-server.ts';
import { startTestProvider, useTestProvider } from '../support/test-provider.ts';
import { createTestCertificates } from '../support/tls.ts';

const client = createDpopClient();
afterAll(() => client.close());
const provider = await useTestProvider();
const certificates = await createTestCertificates();
const upstream = await useUpstream();
const nonceSecret = 'a secret of more than thirty-two bytes, for tests';

const rules = [
  { id: 'public', path: '/public/**', access: 'open' },
  { id: 'foo-bar', path: '/foo/*/bar', access: 'open' },
  { id: 'admin', path: '/admin/**', access: 'deny' },
  { id: 'watched', path: '/watched', mode: 'report', scopes: ['other'] },
  { id: 'packages', path: '/packages/*', access: 'open', encodedSlash: 'allow' },
  { id: 'all', path: '/**' },
  { id: 'write', path: '/orders/**', methods: ['POST'], scopes: ['write:orders'] },
  {
    ...{ id: 'tenants', path: '/t/{tenant}', methods: ['GET', 'PUT'] },
    when: `token.tenant == path.tenant && request.path == '/t/' + path.tenant && request.method == 'GET' &&
      request.host.startsWith('localhost') && request.client_ip == '127.0.0.1' && request.headers.traceparent == 'a, b' &&
      !['authorization', 'cookie', 'x-auth-subject', 'x-forwarded-for'].exists(name, name in request.headers)`,
  },
];
const issuers = { staff: { issuer: provider.issuer, audience: provider.audience } };
const gate = await useGate(provider, { issuers, rules }, { DPOP_NONCE_SECRET: nonceSecret });
await passStart();
// On a busy machine the first fetch may take long.
await gate.findLog(({ event }) => event === 'keys_fetched');
const token = await provider.sign({ client_id: 'shop' });
const bound = await provider.sign({ client_id: 'shop', cnf: { jkt: client.jkt } });

/** A call of a client: the path goes out unchanged. */
const call = (edge: ProxyServer, path: string, options: RequestOptions = {}): Promise<Answer> =>
  send(edge.origin, path, { ca: certificates.ca, ...options });

const bearer = (value: string): readonly string[] => ['Authorization', `Bearer ${value}`];
const proven = (url: string): readonly string[] => Object.entries(client.headers(bound, { url })).flat();

async function countDecisions(): Promise<number> {
  const counts = (await gate.metrics()).matchAll(/^portcullis_requests_total\{.*\} (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

const identityNames = ['x-auth-subject', 'x-auth-client', 'x-auth-scope', 'x-auth-issuer'];

/** What a client may send to pass for another. */
const disguises: readonly (readonly [what: string, headers: readonly string[]])[] = [
  ['the identity headers', identityNames.flatMap((name) => [name, 'admin'])],
  ['the identity headers in capitals', identityNames.flatMap((name) => [name.toUpperCase(), 'admin'])],
  ['the identity headers, twice', [...identityNames, ...identityNames].flatMap((name) => [name, 'admin'])],
  ['the identity headers with underscores', identityNames.flatMap((name) => [name.replaceAll('-', '_'), 'admin'])],
  ['one underscore', ['X-Auth_Subject', 'admin', 'X_Auth-Client', 'admin']],
  [
    'the identity headers with each other character of a name (RFC 9110 §5.6.2), which CGI reads as an underscore',
    [..."!#$%&'*+.^`|~"].flatMap((each) =>
      [`X${each}Auth-Subject`, `X-Auth${each}Client`, `X${each}Auth${each}Scope`].flatMap((name) => [name, 'admin']),
    ),
  ],
  ['Connection with the names', ['Connection', `close, ${identityNames.join(', ')}`]],
];

/** Requests that must not be let in, each as its advisory tells it, and their kin. */
const attacks: readonly (readonly [what: string, path: string, headers?: readonly string[]])[] = [
  ['GHSA-p224-6x5r-fjpm: traversal out of an open path', '/public/../admin/secrets'],
  ['GHSA-p224-6x5r-fjpm: encoded traversal', '/public/%2e%2e/admin/secrets'],
  ['GHSA-p224-6x5r-fjpm: traversal behind an encoded slash', '/public/..%2fadmin/secrets'],
  ['GHSA-p224-6x5r-fjpm: traversal at the end', '/public/x/..'],
  ['GHSA-7rh7-c77v-6434: a query that looks like an open path', '/foo/critical_endpoint?param=/bar'],
  ['GHSA-7rh7-c77v-6434: the same, percent-encoded', '/foo/critical_endpoint%3Fparam=/bar'],
  ['CVE-2026-40575: X-Forwarded-Uri of the client', '/private', ['X-Forwarded-Uri', '/public/x']],
  [
    'CVE-2026-40575: and with the other headers',
    '/private',
    ['X-Forwarded-Uri', '/public/x', 'X-Forwarded-Method', 'GET', 'X-Forwarded-Host', 'x', 'X-Forwarded-Proto', 'http'],
  ],
  ['CVE-2026-40575: X_Forwarded_Uri', '/private', ['X_Forwarded_Uri', '/public/x']],
  ['another spelling of the header', '/private', ['X-Original-URL', '/public/x', 'X-Rewrite-URL', '/public/x']],
  ['a fragment', '/public/x#/../admin'],
  ['an encoded fragment', '/foo/secret%23/bar'],
  ['two slashes', '//admin/secrets'],
  ['two slashes inside', '/public//../admin'],
  ['a semicolon', '/admin;/public/x'],
  ['an encoded semicolon', '/admin%3b/public/x'],
  ['a backslash', '/public/..\\admin'],
  ['an encoded backslash', '/public/..%5cadmin'],
  ['encoded twice', '/public/%252e%252e/admin'],
  ['a null', '/public/%00/../admin'],
  ['overlong UTF-8', '/public/%c0%ae%c0%ae/admin'],
  ['an open path with another case', '/PUBLIC/x'],
  ['a denied path, a letter percent-encoded', '/%61dmin/secrets'],
  ['dots beside an encoded slash that is allowed', '/packages/..%2fadmin'],
];

for (const name of gateEdgeNames) {
  describe(name, needs(edges[name].program), () => {
    let edge: ProxyServer;
    beforeAll(async () => {
      edge = await startGateEdge(name, { gate: `127.0.0.1:${gate.port}`, upstream: upstream.address }, certificates);
    });
    afterAll(() => edge?.stop());

    it('valid token → the upstream gets the unchanged request and the identity', async () => {
      const { status } = await call(edge, '/orders/a%20b?x=%2F..', { headers: bearer(token) });
      expect(status).toBe(200);
      expect(upstream.received.at(-1)).toMatchObject({ method: 'GET', target: '/orders/a%20b?x=%2F..' });
      const headers = lastLines(upstream);
      expect(headers.get('x-auth-client')).toEqual(['shop']);
      expect(headers.get('x-auth-scope')).toEqual(['read:messages']);
      expect(headers.get('x-auth-issuer')).toEqual([provider.issuer]);
    });

    it('token of almost 16 KiB with a header of 12 KiB → the upstream gets the request', async () => {
      const large = await provider.sign({ client_id: 'shop', padding: 'x'.repeat(11_500) });
      expect(large.length).toBeGreaterThan(15_700);
      const { status } = await call(edge, '/orders/1', {
        headers: [...bearer(large), 'X-Padding', 'z'.repeat(12_288)],
      });
      expect([status, lastLines(upstream).get('x-padding')?.[0]?.length]).toEqual([200, 12_288]);
    });

    it('a body reaches the upstream, and the rule depends on the method', async () => {
      const writer = await provider.sign({ scope: 'write:orders' });
      const body = JSON.stringify({ order: 'x'.repeat(10_000) });
      const headers = [...bearer(writer), 'Content-Type', 'application/json'];
      expect(await call(edge, '/orders', { method: 'POST', headers, body })).toMatchObject({ status: 200 });
      expect(upstream.received.at(-1)).toMatchObject({ method: 'POST', body });
      const refused = await call(edge, '/orders', { method: 'POST', headers: bearer(token), body });
      expect(refused.status).toBe(403);
      expect(refused.headers.get('www-authenticate')).toContain('scope="write:orders"');
    });

    it.each([
      ...['X-Real-IP', 'Proxy', 'Forwarded', 'X-Forwarded-Prefix', 'X-Forwarded-Method', 'X-Forwarded-Uri'],
      ...['X-Forwarded-Port', 'X-Forwarded-User', 'X-Forwarded-Ssl', 'x-forwarded-scheme', 'X-Forwarded-Email'],
      ...['X_Real_IP', 'X_Forwarded_Prefix', 'X.Forwarded.User', 'X~Real~IP', 'X-HTTP-Method-Override'],
    ])('client sends %s → it does not arrive; the headers of the proxy do', async (sent) => {
      const { status } = await call(edge, '/public/x', { headers: [sent, '203.0.113.9'] });
      if (status !== 200) return; // the proxy refuses such a request itself
      const { rawHeaders } = upstream.received.at(-1) ?? { rawHeaders: [] };
      expect(rawHeaders.join('\n')).not.toContain('203.0.113.9');
      expect(lastLines(upstream).get('x-forwarded-proto')).toEqual(['https']);
      expect(lastLines(upstream).get('x-forwarded-for')).toEqual(['127.0.0.1']);
    });

    it.each(disguises)('client sends %s → none of it arrives', async (_what, headers) => {
      const before = upstream.received.length;
      for (const [path, credentials] of [
        ['/public/x', []],
        ['/watched', bearer(token)],
        ['/private', bearer(token)],
      ] as const) {
        const { status } = await call(edge, path, { headers: [...headers, ...credentials] });
        // A proxy may refuse such a request by itself.
        if (status !== 200) continue;
        const arrived = identityNames.flatMap((each) => lastLines(upstream).get(each) ?? []);
        expect(arrived).not.toContain('admin');
      }
      expect(upstream.received.length).toBeGreaterThan(before);
    });

    it.each(attacks.map((row) => ({ row, what: row[0] })))(
      '$what → refused',
      async ({ row: [, path, headers = []] }) => {
        const before = upstream.received.length;
        expect([400, 401, 403]).toContain((await call(edge, path, { headers })).status);
        expect(upstream.received.length).toBe(before);
      },
    );

    it.each(['/a/../b', '/a/%2e%2e/b', '/a//b', '/a;b', '/a%2Fb', '/a%5cb', '/a%252fb', '/a%23b'])(
      'an ambiguous path with a valid token: %s → 400',
      async (path) => {
        const before = upstream.received.length;
        expect(await call(edge, path, { headers: bearer(token) })).toMatchObject({ status: 400 });
        expect(upstream.received.length).toBe(before);
      },
    );

    it.each<readonly [string, number, { path: string; headers?: readonly string[]; method?: string }]>([
      ['all that it reads is right', 200, { path: '/t/acme' }],
      ['a percent-encoded value, a query', 200, { path: '/t/%61cme?tenant=x' }],
      ['forged headers', 200, { path: '/t/acme', headers: ['X-Forwarded-For', '::1', 'X-Forwarded-Uri', '/t/x'] }],
      ['a subject, and a cookie', 200, { path: '/t/acme', headers: ['X-Auth-Subject', 'admin', 'Cookie', 'a=b'] }],
      ['another tenant', 403, { path: '/t/other' }],
      ['another case', 403, { path: '/t/Acme' }],
      ['another method', 403, { path: '/t/acme', method: 'PUT' }],
      ['one more line of the header', 403, { path: '/t/acme', headers: ['Traceparent', 'c'] }],
    ])('a condition, with %s → %i', async (_what, expected, { path, headers = [], method = 'GET' }) => {
      const before = upstream.received.length;
      const tenant = await provider.sign({ tenant: 'acme' });
      const lines = [...bearer(tenant), 'Traceparent', 'a', 'Traceparent', 'b', ...headers];
      expect((await call(edge, path, { method, headers: lines })).status).toBe(expected);
      expect(upstream.received.length - before).toBe(expected === 200 ? 1 : 0);
    });

    it('an encoded slash that a rule allows → unchanged at the upstream', async () => {
      expect(await call(edge, '/packages/@a%2Fb')).toMatchObject({ status: 200 });
      expect(upstream.received.at(-1)?.target).toBe('/packages/@a%2Fb');
    });

    it.each([
      ['no token', '/private', 401, 'unauthorized'],
      ['a bad token', '/private', 401, 'invalid_token'],
      ['a denied path', '/admin/x', 403, 'access_denied'],
      ['an ambiguous path', '/admin/..', 400, 'invalid_request'],
    ])('%s → the refusal arrives whole: %s %i', async (what, path, status, error) => {
      const headers = what === 'a bad token' ? bearer('x.y.z') : [];
      const answer = await call(edge, path, { headers });
      expect(answer.status).toBe(status);
      expect(JSON.parse(answer.body)).toMatchObject({ detail: { error } });
      expect(answer.headers.get('content-type')).toContain('application/json');
      const challenge = answer.headers.get('www-authenticate') ?? '';
      expect(/^Bearer realm=.*, DPoP realm=/.test(String(challenge))).toBe(status === 401);
      // One header, not two of them.
      expect(String(challenge).match(/Bearer realm=/g) ?? []).toHaveLength(status === 401 ? 1 : 0);
      expect(answer.headers.get('x-request-id')).toMatch(/./);
    });

    it('a head above 32 KiB → 431 with a body, and not a failure of the gate', async () => {
      const headers = [...bearer('x'.repeat(18_000)), 'DPoP', 'x'.repeat(17_000)];
      const { status, body } = await call(edge, '/private', { headers });
      expect([status, body]).toEqual([431, '{"detail":"Request Header Fields Too Large"}']);
    });

    it.each([
      ['a URL', 'https://localhost:PORT/public/x', 'localhost:PORT'],
      ['a URL with another scheme and a user', 'ftp://admin@localhost:PORT/public/x', 'localhost:PORT'],
      ['a URL whose path is in its query', 'http://localhost:PORT?/public/x', 'localhost:PORT?'],
      ['the path, with a Host that begins with the name', '/public/x', 'localhost:PORT, admin'],
      ['the path, with another port in Host', '/public/x', 'localhost:1'],
    ])('%s in the request line → the upstream gets what the gate authorized, or nothing', async (_what, ...sent) => {
      const [target, host] = sent.map((each) => each.replace('PORT', String(edge.port)));
      const before = upstream.received.length;
      await call(edge, String(target), { headers: ['Host', String(host)] });
      for (const { target: path } of upstream.received.slice(before)) {
        expect([path, lastLines(upstream).get('host')]).toEqual(['/public/x', [`localhost:${edge.port}`]]);
      }
    });

    it('DPoP: the URL of the client passes once; a replay, the URL of the gate and of the upstream do not', async () => {
      const url = `https://localhost:${edge.port}/private`;
      const headers = proven(url);
      expect(await call(edge, '/private?q=1', { headers })).toMatchObject({ status: 200 });
      const replay = await call(edge, '/private?q=1', { headers });
      expect(replay.status).toBe(401);
      expect(replay.headers.get('www-authenticate')).toContain('invalid_dpop_proof');
      for (const other of [
        `${gate.url}/forward-auth`,
        `http://${upstream.address}/private`,
        'https://localhost/private',
        url.replace('https', 'http'),
      ]) {
        expect(await call(edge, '/private', { headers: proven(other) })).toMatchObject({ status: 401 });
      }
    });

    it('report mode → credentials are forwarded, and no request is refused', async () => {
      expect(await call(edge, '/watched', { headers: bearer(token) })).toMatchObject({ status: 200 });
      expect(lastLines(upstream).get('authorization')).toEqual([`Bearer ${token}`]);
      expect((lastLines(upstream).get('x-auth-client') ?? ['']).join('')).toBe('');
      await gate.findLog(({ would_refuse: why }) => why === 'insufficient_scope');
    });

    it('each request → one query to the gate', async () => {
      const before = await countDecisions();
      for (let i = 0; i < 10; i++) await call(edge, `/private/${i}`, { headers: i % 2 === 0 ? bearer(token) : [] });
      expect(await countDecisions()).toBe(before + 10);
    });

    it('errors of the upstream stay its own', async () => {
      const { answer } = upstream;
      onTestFinished(() => void Object.assign(upstream, { answer }));
      for (const status of [401, 403, 404, 500, 503]) {
        upstream.answer = (_incoming, outgoing) => {
          outgoing.writeHead(status, { 'x-upstream': 'yes' }).end('from the upstream');
        };
        const got = await call(edge, '/private', { headers: bearer(token) });
        expect(got).toMatchObject({ status, body: 'from the upstream' });
        expect(got.headers.get('x-upstream')).toBe('yes');
      }
    });
  });

  describe(`${name} without a gate, and with one that has no keys`, needs(edges[name].program), () => {
    /** Starts the proxy before a gate at a port, until the end of the test. */
    const startEdgeOf = async (port: number): Promise<ProxyServer> => {
      const addresses = { gate: `127.0.0.1:${port}`, upstream: upstream.address };
      const edge = await startGateEdge(name, addresses, certificates);
      onTestFinished(() => edge.stop());
      return edge;
    };

    it('no gate → 502 to 504, and the upstream gets nothing', async () => {
      const edge = await startEdgeOf(1);
      const before = upstream.received.length;
      const { status } = await call(edge, '/public/x', { headers: bearer(token) });
      expect([502, 503, 504]).toContain(status);
      expect(upstream.received.length).toBe(before);
    });

    it('a gate that breaks each connection → one query per request, and each is refused', async () => {
      let asked = 0;
      let breaks = false;
      const broken = createServer((incoming, outgoing) => {
        asked++;
        // On a connection that was kept from the request before, as far as the proxy keeps any.
        if (breaks) incoming.socket.destroy();
        else outgoing.writeHead(200, Object.fromEntries(identityNames.map((each) => [each, '']))).end();
      });
      const edge = await startEdgeOf(await listen(broken));
      onTestFinished(() => stop(broken));
      for (let i = 0; i < 3; i++) expect((await call(edge, '/x')).status).toBe(200);
      const [before, arrived] = [asked, upstream.received.length];
      breaks = true;
      for (const method of ['GET', 'POST', 'HEAD', 'GET', 'PUT', 'GET']) {
        expect([500, 502, 503, 504]).toContain((await call(edge, '/x', { method })).status);
      }
      expect(asked - before).toBe(6);
      expect(upstream.received.length).toBe(arrived);
    });

    it('503 with Retry-After → complete; a nonce → sent with refusals and admitted responses', async () => {
      const away = await startTestProvider();
      await away.down();
      const issuers = {
        staff: { issuer: provider.issuer, audience: provider.audience },
        away: { issuer: away.issuer, audience: 'a' },
      };
      const rules = [
        { id: 'away', path: '/away', issuers: ['away'] },
        { id: 'bound', path: '/**', issuers: ['staff'] },
      ];
      const settings = { DPOP_NONCE: 'required', DPOP_NONCE_SECRET: nonceSecret };
      const strict = await openGate(provider, { issuers, rules }, settings);
      onTestFinished(async () => void (await Promise.all([strict.stop(), away.close()])));
      const edge = await startEdgeOf(strict.port);
      await strict.findLog(({ event, issuer }) => event === 'keys_fetched' && issuer === provider.issuer);
      const foreign = await away.sign({ aud: 'a' });
      const unavailable = await call(edge, '/away', { headers: bearer(foreign) });
      expect(unavailable.status).toBe(503);
      expect(unavailable.headers.get('retry-after')).toBe('5');
      expect(JSON.parse(unavailable.body)).toMatchObject({ detail: { error: 'temporarily_unavailable' } });

      const url = `https://localhost:${edge.port}/x`;
      const first = await call(edge, '/x', { headers: proven(url) });
      expect(first.status).toBe(401);
      const nonce = String(first.headers.get('dpop-nonce'));
      expect(nonce).toMatch(/^[\w-]{20,}/);
      const headers = Object.entries(client.headers(bound, { url, nonce })).flat();
      expect(await call(edge, '/x', { headers })).toMatchObject({ status: 200 });
    });
  });
}

describe('nginx on the default port', needs('nginx'), () => {
  const folder = useFolder();
  it('the upstream and proofs → the host without a port, also if the client writes it', async () => {
    const shipped = await readFile(new URL('../../deploy/gate/nginx.conf', import.meta.url), 'utf8');
    const file = join(folder, 'nginx.conf');
    // A test cannot listen on 443: everything but the listener has this port.
    await writeFile(file, shipped.replaceAll(/(?<!listen @ADDRESS@:)@PORT@/g, '443'));
    const edge = await startEdge(
      { ...edges.nginx, templates: [pathToFileURL(file)] },
      { certificates, values: { GATE: `127.0.0.1:${gate.port}`, UPSTREAM: upstream.address } },
    );
    onTestFinished(() => edge.stop());
    for (const host of ['localhost', 'localhost:443']) {
      const headers = ['Host', host, ...proven('https://localhost/private')];
      expect(await call(edge, '/private', { headers })).toMatchObject({ status: 200 });
      expect([lastLines(upstream).get('host'), lastLines(upstream).get('x-forwarded-host')]).toEqual([
        ['localhost'],
        ['localhost'],
      ]);
    }
    const withPort = ['Host', 'localhost', ...proven('https://localhost:443/private')];
    expect(await call(edge, '/private', { headers: withPort })).toMatchObject({ status: 200 });
    const listening = ['Host', 'localhost', ...proven(`https://localhost:${edge.port}/private`)];
    expect(await call(edge, '/private', { headers: listening })).toMatchObject({ status: 401 });
  });
});
