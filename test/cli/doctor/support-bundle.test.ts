import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCommand } from '../../support/command-runs.ts';
import { type KeyFolder, makeKeyFolder } from '../../support/console-client.ts';
import { startDev } from '../../support/dev-process.ts';
import { send } from '../../support/http-client.ts';
import { findLeaks } from '../../support/leaks.ts';
import type { ServiceProcess } from '../../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../../support/test-provider.ts';
import { bearer, findVariant, startVariant } from '../../support/variant-service.ts';

const identity = {
  sub: 'auth0|user-of-the-bundle-0001',
  client_id: 'client-of-the-bundle-0002',
  email: 'person.of.the.bundle@example.test',
  sid: 'session-of-the-bundle-0003',
};
const secrets = {
  DPOP_NONCE_SECRET: 'nonce-secret-of-the-bundle-0123456789',
  LOG_IDENTITY: 'hashed',
  LOG_IDENTITY_SECRET: 'identity-secret-of-the-bundle-0123456789',
  LOGOUT_CLIENTS: identity.client_id,
};
const password = 'password-of-redis-0123456789';

let provider: TestProvider;
let folder: KeyFolder;
let service: ServiceProcess;
let files: string;
const tokens: string[] = [];

beforeAll(async () => {
  provider = await startTestProvider();
  folder = await makeKeyFolder();
  files = await mkdtemp(join(tmpdir(), 'portcullis-bundle-'));
  service = await startVariant(findVariant('a'), provider, { ...folder.environment, ...secrets });
  for (const [path, claims] of [
    ['/api/private', { aud: 'https://other.example/person.of.the.bundle@example.test' }],
    ['/api/private', { exp: 1 }],
    ['/api/private-scoped', { scope: 'read:bundle' }],
    ['/api/private', { iss: 'https://issuer-of-the-bundle.example/' }],
  ] as const) {
    const token = await provider.sign({ ...identity, ...claims });
    tokens.push(token);
    await send(service.url, path, { headers: [...bearer(token), 'X-Request-Id', identity.sid] });
  }
  await send(service.url, `/users/${identity.sub}`, { headers: [] });
});
afterAll(async () => {
  await service.stop();
  await provider.close();
  await folder.close();
  await rm(files, { recursive: true });
});

const environment = () => ({
  ...folder.environment,
  ...secrets,
  IDP_DOMAIN: provider.domain,
  IDP_AUDIENCE: provider.audience,
  NODE_EXTRA_CA_CERTS: provider.caFile,
  REPLAY_STORE: `redis://user-of-redis-0004:${password}@127.0.0.1:9`,
  HTTP_PROXY: `http://proxy:${password}@127.0.0.1:9`,
  NO_PROXY: 'localhost,127.0.0.1',
  ADMIN_PORT: new URL(service.adminUrl ?? '').port,
});

const run = async (name: string, variables: Readonly<Record<string, string | undefined>> = {}) => {
  const file = join(files, name);
  const args = ['doctor', '--only', 'provider,keys,redis', '--timeout', '20', '--bundle', file];
  const { status, stderr } = await runCommand(args, { ...environment(), ...variables });
  return { file, status, stderr, text: await readFile(file, 'utf8').catch(() => '') };
};

describe('doctor --bundle', () => {
  it('versions, settings, keys, refusals and metrics, in a file of the owner', async () => {
    const { file, status, stderr, text } = await run('whole.json');
    expect([status, stderr]).toEqual([1, expect.stringContaining('the support bundle is written')]); // Redis is missing
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const bundle = JSON.parse(text);
    const { version } = JSON.parse(await readFile('package.json', 'utf8'));
    expect(bundle).toMatchObject({ version: 1, portcullis: { version }, runtime: { node: process.versions.node } });
    expect(bundle.settings).toContainEqual({ name: 'IDP_DOMAIN', value: provider.domain, source: 'environment' });
    expect(bundle.findings).toContainEqual(expect.objectContaining({ check: 'keys', level: 'ok' }));
    const { issuer, keys, ageSeconds } = bundle.keys[0];
    expect([issuer, typeof ageSeconds]).toEqual([provider.issuer, 'number']);
    expect(keys.map((key: object) => Object.keys(key))).toEqual([['kid', 'kty', 'alg', 'use']]);
    expect(bundle.refusals).toMatchObject([
      {
        route: '/api/private',
        status: 401,
        reason: 'invalid_audience',
        check: 'aud',
        seen: 'URL',
        expected: 'list of 1',
      },
      { reason: 'expired', check: 'exp', seen: 'time' },
      { route: '/api/private-scoped', status: 403, reason: 'insufficient_scope' },
      { reason: 'invalid_issuer', check: 'issuer' },
    ]);
    expect(bundle.metrics).toContainEqual(
      expect.stringMatching(/^portcullis_refusals_total\{.*reason="expired".*\} 1$/),
    );
  });

  it('no secret and no identity of the run is in it', async () => {
    const before = await folder.readKey();
    const { text } = await run('searched.json');
    const values = Object.values({ ...secrets, ...identity, password, redis: 'user-of-redis-0004' });
    const hidden = [...values, ...tokens, before, await folder.readKey()].filter((value) => value !== 'hashed');
    expect(hidden.length).toBe(15);
    expect(text.length).toBeGreaterThan(4000);
    expect(findLeaks(hidden, [text])).toEqual([]);
    expect(hidden.filter((value) => text.includes(value))).toEqual([]);
    expect(text).not.toMatch(/of.the.bundle/);
  });

  it('a file that exists → 64, and it is unchanged', async () => {
    const file = join(files, 'existing.json');
    await writeFile(file, 'mine');
    const { status, stderr } = await run('existing.json');
    expect([status, stderr]).toEqual([64, expect.stringContaining('--bundle: the file exists, or cannot be created')]);
    expect(await readFile(file, 'utf8')).toBe('mine');
    expect((await run('missing/folder.json')).status).toBe(64);
  });

  it('without the key of the console, or without a service → the bundle says so', async () => {
    const keyless = JSON.parse((await run('keyless.json', { CONSOLE_KEY_FILE: join(files, 'none') })).text);
    expect(keyless.refusals.problem).toContain('its key is unknown');
    expect(keyless.metrics.length).toBeGreaterThan(5);
    const alone = JSON.parse((await run('alone.json', { ADMIN_PORT: '9' })).text);
    expect([alone.refusals, alone.metrics]).toEqual([
      { problem: 'the admin listener is off or does not respond' },
      { problem: 'the admin listener is off or does not respond' },
    ]);
  });

  it('without settings → of the running dev', async () => {
    const dev = await startDev();
    try {
      await send(dev.url, '/api/private', { headers: bearer('undefined') });
      const file = join(files, 'dev.json');
      const { status } = await runCommand(['doctor', '--only', 'keys', '--bundle', file], dev.environment);
      const { keys, refusals, metrics } = JSON.parse(await readFile(file, 'utf8'));
      expect(status).toBe(0);
      expect(keys[0].keys.length).toBeGreaterThan(0);
      expect(refusals).toContainEqual(expect.objectContaining({ reason: 'opaque_token' }));
      expect(metrics.length).toBeGreaterThan(5);
    } finally {
      await dev.stop();
    }
  });
});
