import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { useFolder } from '../../../support/folder.ts';
import { type OpenedGate, openGate } from '../../../support/gate-process.ts';
import { exchange, readStatuses } from '../../../support/http-client.ts';
import { listen } from '../../../support/listening.ts';
import { sendLogout } from '../../../support/logout.ts';
import { awaitReady } from '../../../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../../../support/test-provider.ts';

const secret = 'a secret of at least 32 bytes, yes';
const last = 'Connection: close\r\n';
const webSocket = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
let provider: TestProvider;
let stranger: TestProvider;
let gate: OpenedGate;
const folder = useFolder();
let file: string;
let closeUpstream: () => Promise<void>;
let seen = 0;
const upstream = createServer((incoming, outgoing) => {
  incoming.resume();
  outgoing.end('ok');
}).on('upgrade', (_incoming, socket) => {
  socket.end(
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n',
  );
});

beforeAll(async () => {
  [provider, stranger] = await Promise.all([startTestProvider(), startTestProvider()]);
  file = join(folder, 'audit.jsonl');
  const { origin: UPSTREAM, close } = await listen(upstream);
  closeUpstream = close;
  const rules = {
    issuers: { main: { issuer: provider.issuer, audience: provider.audience } },
    rules: [
      { id: 'public', path: '/open/**', access: 'open' },
      { id: 'never', path: '/deny', access: 'deny' },
      { id: 'optional', path: '/optional', access: 'optional' },
      { id: 'watched', path: '/watched', mode: 'report' },
      { id: 'wide', path: '/wide', scopes: Array.from({ length: 150 }, (_, i) => `scope-${i}-${'s'.repeat(60)}`) },
      { id: 'mcp', path: '/mcp', mcp: { tools: { list: {} } } },
      { id: 'browsers', path: '/browsers', cors: { origins: ['https://app.example'] } },
      { id: 'notes', path: '/notes/**' },
    ],
  };
  gate = await openGate(provider, rules, {
    ...{ AUDIT_LOG: file, LOG_IDENTITY: '', LOG_IDENTITY_SECRET: secret, LOGOUT_CLIENTS: 'app' },
    UPSTREAM,
  });
  await awaitReady(gate);
});
afterAll(async () => {
  await gate?.stop();
  await closeUpstream();
  await Promise.all([provider.close(), stranger.close()]);
});

type Line = Readonly<Record<string, unknown>>;
/** Lines since the test began; each is complete, short enough, and as the schema describes. */
function lines(): readonly Line[] {
  const text = readFileSync(file, 'utf8').slice(seen);
  expect(text === '' || text.endsWith('\n')).toBe(true);
  const schema = JSON.parse(readFileSync(new URL('../../../../schema/audit.schema.json', import.meta.url), 'utf8'));
  const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(schema);
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      expect(Buffer.byteLength(line) + 1).toBeLessThanOrEqual(4096);
      const value = JSON.parse(line) as Line;
      expect([validate(value), validate.errors]).toEqual([true, null]);
      return value;
    });
}
beforeEach(() => {
  seen = readFileSync(file, 'utf8').length;
});

const now = (): number => Math.floor(Date.now() / 1000);
const request = (path: string, { method = 'GET', more = '', body = '' } = {}): string =>
  `${method} ${path} HTTP/1.1\r\nHost: api.example\r\n${more}${body && `Content-Length: ${body.length}\r\n`}${last}\r\n${body}`;
const call = async (...parameters: Parameters<typeof request>) =>
  readStatuses(await exchange(gate.port, request(...parameters)))[0];
const bearer = (token: string): string => `Authorization: Bearer ${token}\r\n`;

it.each<[string, string, Parameters<typeof request>[1], number, object]>([
  ['an open rule', '/open/x', {}, 200, { decision: 'admitted', rule: 'public' }],
  ['an open rule, any method', '/open/x', { method: 'DELETE' }, 200, { decision: 'admitted', method: 'DELETE' }],
  ['a deny rule', '/deny', {}, 403, { decision: 'refused', reason: 'denied_by_rule', rule: 'never' }],
  ['an anonymous caller', '/optional', {}, 200, { decision: 'admitted', rule: 'optional' }],
  ['report mode', '/watched', {}, 200, { decision: 'would_refuse', reason: 'missing_credentials', rule: 'watched' }],
  ['no rule', '/none', {}, 403, { decision: 'refused', reason: 'no_rule' }],
  ['an ambiguous path', '/notes/..%2fdeny', {}, 400, { decision: 'refused', reason: 'ambiguous_path' }],
  ['no token', '/notes/1', {}, 401, { decision: 'refused', reason: 'missing_credentials', rule: 'notes' }],
  ['HEAD', '/notes/1', { method: 'HEAD' }, 401, { decision: 'refused', method: 'HEAD' }],
  ['a method of 40 letters', '/notes/1', { method: 'M'.repeat(40) }, 400, {}],
  ['an operation without an entry', '/mcp', { method: 'POST', body: '{' }, 401, { rule: 'mcp' }],
  [
    'an upgrade without a token',
    '/notes/socket',
    { more: 'Upgrade: websocket\r\n' },
    401,
    { decision: 'refused', reason: 'missing_credentials' },
  ],
])('%s → one line, or none for a request that is not evaluated', async (title, path, options, status, expected) => {
  expect(await call(path, options)).toBe(status);
  // The line of an admitted request is written before it is forwarded.
  const of = status === 200 ? {} : { status };
  expect(lines()).toMatchObject(title.includes('40 letters') ? [] : [{ event: 'decision', ...of, ...expected }]);
});

it('the endpoint for logout, the admin listener → no line; a preflight that the gate responds to → one', async () => {
  expect(await call('/backchannel-logout', { method: 'POST', body: 'logout_token=x' })).toBe(415);
  const admin = Number(new URL(String(gate.adminUrl)).port);
  expect(await exchange(admin, request('/readyz'))).toMatch(/^HTTP/);
  expect(lines()).toEqual([]);
  const origin = 'Origin: https://app.example\r\nAccess-Control-Request-Method: GET\r\n';
  expect(await call('/browsers', { method: 'OPTIONS', more: origin })).toBe(204);
  expect(lines()).toMatchObject([{ decision: 'admitted', rule: 'browsers', method: 'OPTIONS' }]);
});

it('an admitted upgrade → one line, and no part of the token', async () => {
  const token = await provider.sign({ sub: 'ann', jti: 'token-1', client_id: 'shop', sid: 's0' });
  const handshake = request('/notes/socket', { more: `${bearer(token)}Upgrade: websocket\r\n${webSocket}` });
  const received = await exchange(gate.port, handshake.replace(last, 'Connection: Upgrade\r\n'));
  expect(received).toMatch(/^HTTP\/1\.1 101/);
  const found = lines();
  expect(found).toMatchObject([{ decision: 'admitted', rule: 'notes', issuer: provider.issuer, scheme: 'Bearer' }]);
  for (const value of ['ann', 'shop', 'token-1', ...token.split('.')])
    expect(JSON.stringify(found)).not.toContain(`"${value}`);
  expect(found[0]).toMatchObject({
    sub: expect.stringMatching(/^[\w-]{22}$/),
    jti_hash: expect.stringMatching(/^[\w-]{43}$/),
  });
});

it('a signature that is not verified → no claim; a verified one → its claims, hashed', async () => {
  const claims = { sub: 'mallory', client_id: 'evil', jti: 'forged', iss: provider.issuer };
  const forged = await stranger.sign(claims);
  const foreign = await stranger.sign({ sub: 'mallory' });
  const expired = await provider.sign({ sub: 'ann', iat: now() - 600, exp: now() - 300 });
  for (const token of [forged, foreign, expired, 'x.y.z', 'opaque']) {
    expect(await call('/notes/1', { more: bearer(token) })).toBe(401);
  }
  const found = lines();
  expect(found.map(({ sub, jti_hash: jti, client_id: client }) => [sub, jti, client].filter(Boolean).length)).toEqual([
    ...[0, 0, 1, 0, 0],
  ]);
  expect(JSON.stringify(found)).not.toMatch(/mallory|evil|forged|"ann"/);
});

it('a revoked token → the reason, its hashed subject, and the hash of its jti', async () => {
  expect(await sendLogout(provider, gate, 's1')).toBe(200);
  const token = await provider.sign({ sid: 's1', sub: 'ann', jti: 'token-2' });
  await expect.poll(() => call('/notes/1', { more: bearer(token) })).toBe(401);
  const line = lines().at(-1);
  expect(line).toMatchObject({
    decision: 'refused',
    reason: 'revoked_token',
    jti_hash: expect.any(String),
    status: 401,
  });
  expect(JSON.stringify(line)).not.toMatch(/"s1"|"ann"/);
});

it('150 scopes, a long path, host, agent and forged addresses → one line of at most 4,096 bytes', async () => {
  const scope = Array.from({ length: 150 }, (_, i) => `scope-${i}-${'s'.repeat(60)}`).join(' ');
  const token = await provider.sign({ scope: scope.slice(0, 3000), sub: 's'.repeat(600), client_id: 'c'.repeat(600) });
  const more = `${bearer(token)}X-Request-Id: ${'r'.repeat(128)}\r\nX-Forwarded-For: ${'9'.repeat(2000)}\r\nUser-Agent: ${'u'.repeat(2000)}\r\n`;
  expect(await call('/wide', { more })).toBe(403);
  expect(lines()).toMatchObject([{ rule: 'wide', reason: 'insufficient_scope', client_ip: '127.0.0.1' }]);
});

it('2,000 requests at once → as many lines, each whole, with one hash of the rules', async () => {
  const token = await provider.sign({ sub: 'ann', sid: 's9' });
  const one = `GET /notes/1 HTTP/1.1\r\nHost: api.example\r\n${bearer(token)}`;
  const bytes = `${`${one}\r\n`.repeat(99)}${one}${last}\r\n`;
  const received = await Promise.all(Array.from({ length: 20 }, () => exchange(gate.port, bytes)));
  expect(readStatuses(received.join('')).filter((status) => status === 200)).toHaveLength(2000);
  const found = lines();
  expect([found.length, new Set(found.map(({ id }) => id)).size]).toEqual([2000, 2000]);
  expect(new Set(found.map(({ rules }) => rules)).size).toBe(1);
});
