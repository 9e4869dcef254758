import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createDpopClient } from '../support/dpop-client.ts';
import { openGate, tell, useGate } from '../support/gate-process.ts';
import { send } from '../support/http-client.ts';
import { passStart } from '../support/pass-start.ts';
import { useTestProvider } from '../support/test-provider.ts';

const client = createDpopClient();
afterAll(() => client.close());
const provider = await useTestProvider();
// Under an authority that the gate does not trust.
const partner = await useTestProvider({ audience: 'partners', isTrusted: false });
const issuers = {
  staff: { issuer: provider.issuer, audience: provider.audience },
  partner: { issuer: partner.issuer, audience: 'partners' },
};
const rules = [
  { id: 'health', path: '/healthz', access: 'open' },
  { id: 'closed', path: '/closed/**', access: 'deny' },
  { id: 'orders', path: '/orders/**', issuers: ['staff'], scopes: ['read:messages'] },
  { id: 'orders-write', path: '/orders/**', methods: ['POST'], issuers: ['staff'], scopes: ['write:orders'] },
  { id: 'bound', path: '/bound', issuers: ['staff'], dpop: 'required' },
  { id: 'watched', path: '/watched', mode: 'report', issuers: ['staff'], scopes: ['other'] },
  { id: 'watched-bound', path: '/watched-bound', mode: 'report', issuers: ['staff'] },
  { id: 'partners', hosts: ['partners.example'], path: '/**', issuers: ['partner'] },
];
const gate = await useGate(provider, { issuers, rules });
// On a busy machine the first fetch may take long.
await gate.findLog(({ event }) => event === 'keys_fetched');
const token = await provider.sign({ client_id: 'shop' });
await passStart();

const bearer = (value: string): readonly string[] => ['Authorization', `Bearer ${value}`];

describe('/forward-auth', () => {
  it('allowed → 200, an empty body and the identity headers', async () => {
    const answer = await gate.ask({ path: '/orders/1?x=//..', headers: bearer(token) });
    expect(answer).toMatchObject({ status: 200, body: '' });
    const { headers } = answer;
    expect(headers.get('x-auth-issuer')).toBe(provider.issuer);
    expect(headers.get('x-auth-client')).toBe('shop');
    expect(headers.get('x-auth-scope')).toBe('read:messages');
    expect(headers.get('x-auth-subject')).not.toBe('');
  });

  it('an open rule → 200, all identity headers empty', async () => {
    const { status, headers } = await gate.ask({ path: '/healthz', headers: bearer('nonsense') });
    expect(status).toBe(200);
    for (const name of ['subject', 'client', 'scope', 'issuer']) expect(headers.get(`x-auth-${name}`)).toBe('');
  });

  it('no token → the complete refusal, without a link to metadata that is not served', async () => {
    const { status, headers, body } = await gate.ask({ path: '/orders/1', host: 'evil.example' });
    expect(status).toBe(401);
    const challenge = headers.get('www-authenticate') ?? '';
    expect(challenge).toContain('Bearer realm=');
    expect(challenge).toContain('scope="read:messages"');
    expect(challenge).not.toContain('resource_metadata');
    expect(challenge).not.toContain('evil.example');
    expect(headers.get('x-gate-body')).toBe(body);
    expect(JSON.parse(body)).toMatchObject({ detail: { error: 'unauthorized' } });
  });

  it('a scope is missing → 403 with the challenge; the rule depends on the method of the client', async () => {
    const { status, headers } = await gate.ask({ method: 'POST', path: '/orders/1', headers: bearer(token) });
    expect(status).toBe(403);
    expect(headers.get('www-authenticate')).toContain('scope="write:orders"');
  });

  it.each([
    ['nothing matches', '/other', 403, 'access_denied'],
    ['access: deny', '/closed/1', 403, 'access_denied'],
    ['an ambiguous path', '/closed/../healthz', 400, 'invalid_request'],
  ])('%s → %s %i, without a challenge', async (_claim, path, expected, error) => {
    const { status, headers, json } = await gate.ask({ path, headers: bearer(token) });
    expect(status).toBe(expected);
    expect(headers.get('www-authenticate')).toBeUndefined();
    expect(json).toMatchObject({ detail: { error } });
  });

  it.each<[string, readonly string[]]>([
    ['no headers', []],
    ['no method', tell({ path: '/healthz' }).slice(2)],
    ['no URI', tell({ path: '/healthz' }).slice(0, -2)],
    ['two methods', [...tell({ path: '/healthz' }), 'X-Forwarded-Method', 'GET']],
    ['two hosts', [...tell({ path: '/healthz' }), 'x-forwarded-host', 'api.example']],
    ['two schemes', [...tell({ path: '/healthz' }), 'X-Forwarded-Proto', 'https']],
    ['two URIs', [...tell({ path: '/healthz' }), 'X-Forwarded-Uri', '/healthz']],
    ['a second URI that is empty', [...tell({ path: '/healthz' }), 'X-Forwarded-Uri', '']],
    ['a list of hosts', tell({ path: '/healthz', host: 'api.example,evil.example' })],
    ['a URL for a path', tell({ path: 'https://api.example/healthz' })],
    ['an empty host', tell({ path: '/healthz', host: '' })],
    ['a host with user information', tell({ path: '/healthz', host: 'user@api.example' })],
    ['a host that is none', tell({ path: '/healthz', host: 'a..b' })],
    ['another scheme', tell({ path: '/healthz', proto: 'ftp' })],
    ['a list of schemes', tell({ path: '/healthz', proto: 'wss,https' })],
    ['a method in lower case', tell({ path: '/healthz', method: 'post' })],
    ['a method with a space', tell({ path: '/healthz', method: 'GET /' })],
  ])('%s → 400', async (_claim, headers) => {
    const { status, json } = await send(gate.url, '/forward-auth', { headers });
    expect(status).toBe(400);
    expect(json).toMatchObject({ detail: { error: 'invalid_request' } });
  });

  it("the subrequest's own method, Host and path are ignored", async () => {
    const answer = await send(gate.url, '/forward-auth?x=/healthz', {
      method: 'POST',
      headers: [...tell({ path: '/orders/1' }), 'Host', 'partners.example', ...bearer(token)],
    });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('x-auth-issuer')).toBe(provider.issuer);
  });

  it('token of another issuer → refused by each rule', async () => {
    const { status } = await gate.ask({ host: 'partners.example', path: '/x', headers: bearer(token) });
    expect(status).toBe(401);
    const line = await gate.findLog(({ rule, status }) => rule === 'partners' && status === 401);
    expect(line['reason']).toBe('invalid_issuer');
  });

  it.each(['/', '/forward-auth/x', '/forward-authx', '/ext-authz', '/metrics'])(
    'any other path: %s → 404, with host and path in the log',
    async (path) => {
      const answer = await send(gate.url, `${path}?token=x`, { headers: tell({ path: '/healthz' }) });
      expect(answer.status).toBe(404);
      const line = await gate.findLog(({ id }) => id === answer.headers.get('x-request-id'));
      expect(line).toMatchObject({ method: 'GET', host: new URL(gate.url).host, path });
      expect(JSON.stringify(line)).not.toContain('token=x');
    },
  );

  it('DPoP: the URL of the client passes once; the URL of the gate never does', async () => {
    const bound = await provider.sign({ cnf: { jkt: client.jkt } });
    const proven = (url: string): readonly string[] => Object.entries(client.headers(bound, { url })).flat();
    const headers = proven('https://api.example/bound');
    expect(await gate.ask({ path: '/bound?q=1', headers })).toMatchObject({ status: 200 });
    expect(await gate.ask({ path: '/bound?q=1', headers })).toMatchObject({ status: 401 });
    await gate.findLog(({ reason, rule }) => reason === 'proof_replayed' && rule === 'bound');
    for (const url of [`${gate.url}/forward-auth`, 'http://api.example/bound', 'https://api.example/other']) {
      expect(await gate.ask({ path: '/bound', headers: proven(url) })).toMatchObject({ status: 401 });
    }
    const free = await gate.ask({ path: '/bound', headers: bearer(token) });
    expect(free.status).toBe(401);
    expect(free.headers.get('www-authenticate')).toMatch(/^DPoP /);
  });
});

it('HOST=unix:/path, without a trusted address → the rights of the file choose the proxy', async () => {
  const socketPath = join(tmpdir(), `portcullis-forward-auth-${process.pid}.sock`);
  const local = await openGate(provider, { issuers, rules }, { HOST: `unix:${socketPath}`, TRUST_PROXY: 'false' });
  const headers = [...tell({ path: '/healthz' }), 'Host', 'gate'];
  const outgoing = request({ socketPath, path: '/forward-auth', headers }).end();
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
  expect(incoming.statusCode).toBe(200);
  outgoing.destroy();
  expect(await local.stop()).toBe(0);
});

describe('/ext-authz', () => {
  const ask = (path: string, headers: readonly string[], method = 'GET') =>
    send(gate.url, `/ext-authz${path}`, { method, headers: ['Host', 'api.example', ...headers] });

  it('reads method, Host and path of the call, and the scheme of X-Forwarded-Proto', async () => {
    const proto = ['X-Forwarded-Proto', 'https'];
    expect(await ask('/healthz', proto)).toMatchObject({ status: 200, body: '' });
    expect(await ask('/orders/1', [...proto, ...bearer(token)])).toMatchObject({ status: 200 });
    expect(await ask('/orders/1', [...proto, ...bearer(token)], 'POST')).toMatchObject({ status: 403 });
    expect(await ask('/orders/../healthz', proto)).toMatchObject({ status: 400 });
    expect(await ask('//healthz', proto)).toMatchObject({ status: 400 });
    expect(await ask('/healthz', [])).toMatchObject({ status: 400 });
    expect(await ask('/healthz', [...proto, ...proto])).toMatchObject({ status: 400 });
    const bound = await provider.sign({ cnf: { jkt: client.jkt } });
    const headers = Object.entries(client.headers(bound, { url: 'https://api.example/bound' })).flat();
    expect(await ask('/bound', ['X-Forwarded-Proto', 'wss', ...headers])).toMatchObject({ status: 200 });
  });

  it('forwarded headers of a client → ignored for host, path and method', async () => {
    const { status } = await ask('/orders/1', ['X-Forwarded-Proto', 'https', ...tell({ path: '/healthz' }).slice(4)]);
    expect(status).toBe(401);
  });
});

describe('report mode', () => {
  it('a request that would be refused → 200 with empty identity headers, a log line and a count', async () => {
    const answer = await gate.ask({ path: '/watched', headers: bearer(token) });
    expect([answer.status, answer.headers.get('x-auth-subject')]).toEqual([200, '']);
    const line = await gate.findLog(({ rule, would_refuse: why }) => rule === 'watched' && why !== undefined);
    expect(line).toMatchObject({ status: 200, would_refuse: 'insufficient_scope', method: 'GET' });
    expect(line['reason']).toBeUndefined();
    expect(await gate.metrics()).toMatch(
      /^portcullis_would_refuse_total\{rule="watched",reason="insufficient_scope"\} 1$/m,
    );
  });

  it('ambiguous paths → still refused', async () => {
    expect(await gate.ask({ path: '/watched/%2e%2e/watched' })).toMatchObject({ status: 400 });
  });

  it('a proof → not recorded, and usable by the upstream', async () => {
    const bound = await provider.sign({ cnf: { jkt: client.jkt } });
    const headers = Object.entries(client.headers(bound, { url: 'https://api.example/watched-bound' })).flat();
    for (let i = 0; i < 2; i++) {
      const answer = await gate.ask({ path: '/watched-bound', headers });
      expect(answer.status).toBe(200);
      expect(answer.headers.get('x-auth-issuer')).toBe(provider.issuer);
    }
  });
});

describe('output for operators', () => {
  it('a log line has the id of the rule, the method of the client, and no token', async () => {
    await gate.ask({ method: 'DELETE', path: '/closed/secret-path', headers: bearer(token) });
    const line = await gate.findLog(({ rule, method }) => rule === 'closed' && method === 'DELETE');
    expect(line).toMatchObject({ status: 403, reason: 'denied_by_rule' });
    expect(JSON.stringify(gate.logs)).not.toContain(token.slice(-20));
  });

  it('keys by issuer, each family of metrics once', async () => {
    const metrics = await gate.metrics();
    expect(metrics).toContain(`portcullis_key_set_usable{issuer="${provider.issuer}"} 1`);
    expect(metrics).toContain(`portcullis_key_set_usable{issuer="${partner.issuer}"} 0`);
    const families = [...metrics.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
    expect(families).toEqual([...new Set(families)]);
  });

  it('the generation of the rules, and requests by rule', async () => {
    const metrics = await gate.metrics();
    expect(metrics).toMatch(/^portcullis_rules_generation 1$/m);
    expect(metrics).toMatch(/^portcullis_rules_last_reload_ok 1$/m);
    expect(metrics).toMatch(/^portcullis_requests_total\{rule="health",status="200"/m);
  });
});
