import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { revocationCheck } from '../../../src/cli/doctor/revocation-check.ts';
import { readSettings } from '../../../src/server/settings/settings.ts';
import { needs } from '../../support/programs.ts';
import { startTestRedis } from '../../support/redis.ts';
import { startTlsRedis } from '../../support/redis-tls.ts';

const token = (claims: object): string => `x.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.y`;

async function check(environment: Readonly<Record<string, string>>, bearer?: string) {
  const issuer = environment['ISSUER'] ?? 'https://idp.example/';
  const result = readSettings({
    args: [],
    environment: { ISSUER: issuer, IDP_AUDIENCE: 'a', ADMIN_PORT: 'off', ...environment },
  });
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems));
  const context = {
    deployment: { settings: result.settings, issuer, nameOf: String },
    credentials: bearer && { token: bearer },
    timeout: 1000,
  };
  const outcomes = await revocationCheck.run(context as never); // the members that the check reads
  return [outcomes].flat().map(({ code, level }) => code ?? level);
}

it.each<[string, Readonly<Record<string, string>>, string | undefined, readonly string[]]>([
  ['no source', {}, undefined, ['skipped']],
  ['logout, no token', { LOGOUT_CLIENTS: 'app' }, undefined, ['ok']],
  ['logout, a token with sid', { LOGOUT_CLIENTS: 'app' }, token({ sid: 's' }), ['ok']],
  ['logout, a token without sid', { LOGOUT_CLIENTS: 'app' }, token({}), ['D262']],
  ['logout, an opaque token', { LOGOUT_CLIENTS: 'app' }, 'opaque', ['ok']],
  ['LOGOUT_SUBJECT, a token without sid', { LOGOUT_CLIENTS: 'app', LOGOUT_SUBJECT: 'true' }, token({}), ['ok']],
  ['a Redis that is unreachable', { REVOCATION_STORE: 'redis://127.0.0.1:9' }, undefined, ['D260']],
])('%s → %j', async (_title, environment, bearer, expected) => {
  expect(await check(environment, bearer)).toEqual(expected);
});

it('the fix names the setting of the provider', async () => {
  const settings = readSettings({
    args: [],
    environment: {
      ISSUER: 'https://id.example/realms/main',
      IDP_AUDIENCE: 'a',
      LOGOUT_CLIENTS: 'app',
      ADMIN_PORT: 'off',
    },
  });
  const context = {
    deployment: { ...settings, issuer: 'https://id.example/realms/main' },
    credentials: { token: token({}) },
    timeout: 1000,
  };
  expect([await revocationCheck.run(context as never)].flat()).toMatchObject([
    { fix: expect.stringContaining('lightweight') },
  ]);
});

describe('a real Redis', needs('redis-server'), () => {
  it.each([
    ['noeviction', 'ok'],
    ['allkeys-lru', 'D261'],
  ])('maxmemory-policy %s → %s', async (policy, expected) => {
    const redis = await startTestRedis({ flags: ['--maxmemory', '100mb', '--maxmemory-policy', policy] });
    onTestFinished(() => redis.stop());
    expect(await check({ REVOCATION_STORE: redis.url })).toEqual([expected]);
  });

  it('TLS with a private authority and a client certificate → ok; without them D260', async () => {
    const { url, files, stop } = await startTlsRedis();
    onTestFinished(stop);
    const REVOCATION_STORE = url;
    const certificates = { REPLAY_CA: files.ca, REPLAY_CERT: files.cert, REPLAY_KEY: files.key };
    expect(await check({ REVOCATION_STORE, ...certificates })).toEqual(['ok']);
    expect(await check({ REVOCATION_STORE })).toEqual(['D260']);
  });
});

it('a running service with a stale stream → D263', async () => {
  const server = createServer((_request, response) =>
    response.end(JSON.stringify({ ready: true, degraded: ['stream idp', 'replay'] })),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  expect(await check({ LOGOUT_CLIENTS: 'app', ADMIN_PORT: String(port) })).toEqual(['D263']);
});
