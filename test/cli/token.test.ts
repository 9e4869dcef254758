import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { expect, test } from 'vitest';
import { runCommand } from '../../src/cli/commands/run.ts';
import { startLocalIdp } from '../../src/dev/provider/local-idp.ts';
import { listen, stop } from '../../tools/shared/network.js';
import { idpOptions, useLocalIdp } from '../support/local-idp.ts';
import { useOutput } from '../support/own-output.ts';

const runToken = (args: readonly string[], variables: NodeJS.ProcessEnv) => runCommand('token', args, variables);

const { idp, cacheFolder, environment } = await useLocalIdp();
const printed = useOutput();

test('no flag → a token without scope, one line and nothing else', async () => {
  expect(await runToken([], environment)).toBe(0);
  expect(printed.stdout).toMatch(/^ey[\w-]+\.[\w-]+\.[\w-]+\n$/);
  expect(printed.stderr).toBe('');
  expect(decodeJwt(printed.stdout.trim())).toMatchObject({ iss: idp.issuer, aud: idpOptions.audience });
  expect(decodeJwt(printed.stdout.trim())).not.toHaveProperty('scope');
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
  expect(decodeJwt(printed.stdout.trim())).toMatchObject(claims);
});

test('--expired → exp has passed; --not-yet-valid → nbf is to come', async () => {
  const now = Date.now() / 1000;
  await runToken(['--expired'], environment);
  expect(decodeJwt(printed.stdout.trim()).exp).toBeLessThan(now);
  printed.stdout = '';
  await runToken(['--not-yet-valid'], environment);
  expect(decodeJwt(printed.stdout.trim()).nbf).toBeGreaterThan(now);
});

test('--unknown-key → another kid than --audience has', async () => {
  await runToken(['--unknown-key'], environment);
  const { kid } = decodeProtectedHeader(printed.stdout.trim());
  printed.stdout = '';
  await runToken(['--audience', 'x'], environment);
  expect(decodeProtectedHeader(printed.stdout.trim()).kid).not.toBe(kid);
});

test('--idp without a provider, next to a running one → a message about the flag', async () => {
  expect(await runToken(['--idp', 'https://localhost:1/'], environment)).toBe(69);
  expect(printed.stderr).toContain('no local identity provider is running at the URL of --idp. Omit the flag');
});

test('terminal → an explanation on stderr, the token alone on stdout', async () => {
  process.stderr.isTTY = true;
  expect(await runToken([], environment)).toBe(0);
  expect(printed.stdout).toMatch(/^ey\S+\n$/);
  expect(printed.stderr).toContain(idp.issuer);
  expect(printed.stderr).not.toContain(printed.stdout.trim());
});

test('--idp → the provider that is named, its trailing slash optional', async () => {
  const second = await startLocalIdp({ ...idpOptions, environment });
  for (const { issuer } of [idp, second]) {
    printed.stdout = '';
    expect(await runToken(['--idp', issuer.slice(0, -1)], environment)).toBe(0);
    expect(decodeJwt(printed.stdout.trim()).iss).toBe(issuer);
  }
  await second.close();
});

test.each([
  ['nothing was ever started', [], { XDG_CACHE_HOME: '/dev/null' }],
  ['no such provider', ['--idp', 'https://localhost:1/'], undefined],
  ['no TLS', ['--idp', 'http://localhost:1/'], undefined],
])('%s → 69 and the command that starts one', async (_name, args, other) => {
  expect(await runToken(args, other ?? environment)).toBe(69);
  expect(printed.stdout).toBe('');
  expect(printed.stderr).toContain('portcullis dev');
});

test('provider that refuses → 69 and its status', async () => {
  const read = (name: string) => readFileSync(join(cacheFolder, 'identity', name), 'utf8');
  const server = createServer({ cert: read('certificate.pem'), key: read('key.pem') });
  const issuer = `https://localhost:${await listen(server)}/`;
  server.on('request', (request, response) => {
    response.statusCode = request.method === 'GET' ? 200 : 503;
    response.end(JSON.stringify({ issuer }));
  });
  expect(await runToken(['--idp', issuer], environment)).toBe(69);
  expect(printed.stdout).toBe('');
  expect(printed.stderr).toContain('status 503');
  await stop(server);
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
  expect(decodeJwt(printed.stdout.trim())).toMatchObject(claims);
});

test('--claim NAME=null → the claim is left out', async () => {
  expect(await runToken(['--claim', 'client_id=null'], environment)).toBe(0);
  expect(decodeJwt(printed.stdout.trim())).not.toHaveProperty('client_id');
});

test('--auth-time → seconds ago', async () => {
  expect(await runToken(['--auth-time', '600'], environment)).toBe(0);
  const { auth_time: signedIn, iat } = decodeJwt(printed.stdout.trim());
  expect(Number(iat) - Number(signedIn)).toBeGreaterThanOrEqual(599);
  expect(Number(iat) - Number(signedIn)).toBeLessThan(660);
});
