import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { runCommand } from '../../src/cli/commands/run.ts';
import { type LocalIdp, startLocalIdp } from '../../src/dev/provider/local-idp.ts';
import { takeSigningKey } from '../support/rsa-keys.ts';

const runToken = (args: readonly string[], variables: NodeJS.ProcessEnv) => runCommand('token', args, variables);

const options = { port: 0, audience: 'https://api.example/', customClaim: 'claim' } as const;
let environment: NodeJS.ProcessEnv;
let base: string;
let idp: LocalIdp;
let out: string;
let err: string;

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'portcullis-'));
  environment = { XDG_CACHE_HOME: base };
  idp = await startLocalIdp({ makeKey: takeSigningKey, ...options, environment });
});
afterAll(async () => {
  await idp.close();
  await rm(base, { recursive: true });
});

const isTty = process.stderr.isTTY;
beforeEach(() => {
  out = '';
  err = '';
  process.stderr.isTTY = false;
  vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    out += String(chunk);
    return true;
  });
  vi.spyOn(process.stderr, 'write').mockImplementation((chunk) => {
    err += String(chunk);
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  process.stderr.isTTY = isTty;
});

test('no flag → a token without scope, one line and nothing else', async () => {
  expect(await runToken([], environment)).toBe(0);
  expect(out).toMatch(/^ey[\w-]+\.[\w-]+\.[\w-]+\n$/);
  expect(err).toBe('');
  expect(decodeJwt(out.trim())).toMatchObject({ iss: idp.issuer, aud: options.audience });
  expect(decodeJwt(out.trim())).not.toHaveProperty('scope');
});

test.each([
  [['--scope', 'read:messages'], { scope: 'read:messages' }],
  [['--scope', 'read:messages write:messages'], { scope: 'read:messages write:messages' }],
  [['--scope=other'], { scope: 'other' }],
  [['--audience', 'https://other.example/'], { aud: 'https://other.example/' }],
  [
    ['--issuer', 'https://other.example/', '--scope', 'read:messages'],
    { iss: 'https://other.example/', scope: 'read:messages' },
  ],
])('%j → %j', async (args, claims) => {
  expect(await runToken(args, environment)).toBe(0);
  expect(decodeJwt(out.trim())).toMatchObject(claims);
});

test('--expired → exp has passed; --not-yet-valid → nbf is to come', async () => {
  const now = Date.now() / 1000;
  await runToken(['--expired'], environment);
  expect(decodeJwt(out.trim()).exp).toBeLessThan(now);
  out = '';
  await runToken(['--not-yet-valid'], environment);
  expect(decodeJwt(out.trim()).nbf).toBeGreaterThan(now);
});

test('--unknown-key → another kid than --audience has', async () => {
  await runToken(['--unknown-key'], environment);
  const { kid } = decodeProtectedHeader(out.trim());
  out = '';
  await runToken(['--audience', 'x'], environment);
  expect(decodeProtectedHeader(out.trim()).kid).not.toBe(kid);
});

test('terminal → an explanation on stderr, the token alone on stdout', async () => {
  process.stderr.isTTY = true;
  expect(await runToken([], environment)).toBe(0);
  expect(out).toMatch(/^ey\S+\n$/);
  expect(err).toContain(idp.issuer);
  expect(err).not.toContain(out.trim());
});

test('--idp → the provider that is named, its trailing slash optional', async () => {
  const second = await startLocalIdp({ makeKey: takeSigningKey, ...options, environment });
  for (const { issuer } of [idp, second]) {
    out = '';
    expect(await runToken(['--idp', issuer.slice(0, -1)], environment)).toBe(0);
    expect(decodeJwt(out.trim()).iss).toBe(issuer);
  }
  await second.close();
});

test.each([
  ['nothing was ever started', [], { XDG_CACHE_HOME: '/dev/null' }],
  ['no such provider', ['--idp', 'https://localhost:1/'], undefined],
  ['no TLS', ['--idp', 'http://localhost:1/'], undefined],
])('%s → 69 and the command that starts one', async (_name, args, other) => {
  expect(await runToken(args, other ?? environment)).toBe(69);
  expect(out).toBe('');
  expect(err).toContain('portcullis dev');
});

test.each([
  [['--nope']],
  [['positional']],
  [['--scope']],
  [['--expired=yes']],
  [['--expired', '--not-yet-valid']],
  [['--idp', 'localhost']],
])('%j → 64 and where the help is', async (args) => {
  expect(await runToken(args, environment)).toBe(64);
  expect(out).toBe('');
  expect(err).toMatch(/^portcullis: .*\.\nFlags and examples: portcullis token --help\n$/);
});

test('provider that refuses → 69 and its status', async () => {
  const read = (name: string) => readFileSync(join(base, 'portcullis', 'identity', name), 'utf8');
  const server = createServer({ cert: read('certificate.pem'), key: read('key.pem') });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `https://localhost:${(server.address() as AddressInfo).port}/`; // it listens on TCP
  server.on('request', (request, response) => {
    response.statusCode = request.method === 'GET' ? 200 : 503;
    response.end(JSON.stringify({ issuer }));
  });
  expect(await runToken(['--idp', issuer], environment)).toBe(69);
  expect(out).toBe('');
  expect(err).toContain('status 503');
  await new Promise((resolve) => server.close(resolve));
});

test.each([
  [['--sub', 'alice'], { sub: 'alice' }],
  [['--actor', 'agent-1'], { act: { sub: 'agent-1' } }],
  [['--permissions', 'read:a write:a'], { permissions: ['read:a', 'write:a'] }],
  [['--acr', 'gold'], { acr: 'gold' }],
  [['--claim', 'tenant=acme', '--claim', 'age=7', '--claim', 'roles=["a"]'], { tenant: 'acme', age: 7, roles: ['a'] }],
  [
    ['--claim', 'n=9007199254740993', '--claim', 'of=[1e400,{"a":1.50}]', '--claim', 'not=1,"a":2'],
    { n: '9007199254740993', of: ['1e400', { a: 1.5 }], not: '1,"a":2' },
  ],
  [['--claim', 'url=https://a.example/?b=c'], { url: 'https://a.example/?b=c' }],
])('%j → %j', async (args, claims) => {
  expect(await runToken(args, environment)).toBe(0);
  expect(decodeJwt(out.trim())).toMatchObject(claims);
});

test('--claim NAME=null → the claim is left out', async () => {
  expect(await runToken(['--claim', 'client_id=null'], environment)).toBe(0);
  expect(decodeJwt(out.trim())).not.toHaveProperty('client_id');
});

test('--auth-time → seconds ago', async () => {
  expect(await runToken(['--auth-time', '600'], environment)).toBe(0);
  const { auth_time: signedIn, iat } = decodeJwt(out.trim());
  expect(Number(iat) - Number(signedIn)).toBeGreaterThanOrEqual(599);
  expect(Number(iat) - Number(signedIn)).toBeLessThan(660);
});

test.each([[['--claim', 'nothing']], [['--claim', '=x']], [['--auth-time', 'now']]])('%j → 64', async (args) => {
  expect(await runToken(args, environment)).toBe(64);
  expect(out).toBe('');
});

test('--opaque → 64', async () => expect(await runToken(['--opaque'], environment)).toBe(64));
