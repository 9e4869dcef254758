import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createTestIssuer } from '../../src/testing/index.ts';
import { useFolder } from '../support/folder.ts';
import { openGate, useGate } from '../support/gate-process.ts';
import { useTestProvider } from '../support/test-provider.ts';

const provider = await useTestProvider();
const opaque = await createTestIssuer().listen();
afterAll(() => opaque.close());
const folder = useFolder();
const secretFile = join(folder, 'secret');
await writeFile(secretFile, `${opaque.introspectionAccount.clientSecret}\n`);
const environment = { NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') };
await writeFile(environment.NODE_EXTRA_CA_CERTS, `${provider.ca}\n${opaque.ca}`);

const writeRules = (introspection: object = {}) => ({
  issuers: {
    jwt: { issuer: provider.issuer, audience: provider.audience },
    opaque: {
      issuer: opaque.issuer,
      audience: opaque.audience,
      introspection: {
        endpoint: opaque.introspectionAccount.endpoint,
        clientId: opaque.introspectionAccount.clientId,
        clientSecretFile: secretFile,
        maxSeconds: 0,
        inactiveSeconds: 0,
        ...introspection,
      },
    },
  },
  rules: [
    { id: 'orders', path: '/orders/**', issuers: ['opaque'], scopes: ['read:orders'] },
    { id: 'jwt', path: '/jwt/**', issuers: ['jwt'] },
  ],
});

const bearer = (token: string) => ({ headers: ['Authorization', `Bearer ${token}`] });

describe('opaque tokens at the gate', async () => {
  const gate = await useGate(provider, writeRules(), environment);
  await gate.findLog(({ event }) => event === 'keys_fetched');
  const ask = async (token: string, path = '/orders/1') => {
    const answer = await gate.ask({ path, ...bearer(token) });
    const { reason } = await gate.findLog(({ id }) => id === answer.headers.get('x-request-id'));
    return { status: answer.status, reason, subject: answer.headers.get('x-auth-subject') };
  };

  it('active → 200 with the identity of the introspection response; revoked → 401 at the next request', async () => {
    const token = opaque.opaqueToken({ sub: 'alice', scope: 'read:orders' });
    expect(await ask(token)).toMatchObject({ status: 200, subject: 'alice' });
    opaque.revoke(token);
    expect(await ask(token)).toMatchObject({ status: 401, reason: 'inactive_token' });
  });

  it.each([
    ['without the scope', () => opaque.opaqueToken({ scope: 'read:other' }), 403, 'insufficient_scope'],
    ['for another audience', () => opaque.opaqueToken({ scope: 'read:orders', aud: 'other' }), 401, 'invalid_audience'],
    ['that the endpoint does not know', () => 'unknown-token', 401, 'inactive_token'],
  ])('a token %s → %s', async (_what, token, status, reason) => {
    expect(await ask(token())).toMatchObject({ status, reason });
  });

  it('an opaque token for a rule of another issuer → 401, and the endpoint is not queried', async () => {
    const { status, reason } = await ask(opaque.opaqueToken({ scope: 'read:orders' }), '/jwt/1');
    expect([status, reason]).toEqual([401, 'opaque_token']);
  });

  it('a wrong secret and SIGHUP → 503 and never 401; the right one and SIGHUP → 200', async () => {
    const token = opaque.opaqueToken({ sub: 'bob', scope: 'read:orders' });
    await writeFile(secretFile, 'another secret');
    gate.signal('SIGHUP');
    await expect.poll(async () => (await ask(token)).status, { timeout: 10_000 }).toBe(503);
    await writeFile(secretFile, opaque.introspectionAccount.clientSecret);
    gate.signal('SIGHUP');
    await expect.poll(async () => (await ask(token)).subject, { timeout: 10_000 }).toBe('bob');
  });
});

describe('a condition on a JWT that is introspected', async () => {
  provider.serve('/introspect', (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const { issuer: iss, audience: aud } = provider;
    response.end(JSON.stringify({ active: true, iss, aud, sub: 'alice', exp: Date.now() / 1000 + 300, plan: 'free' }));
  });
  const introspection = {
    ...{ endpoint: `${provider.issuer}introspect`, clientId: 'gate', clientSecretFile: secretFile, tokens: 'all' },
  };
  const gate = await useGate(provider, {
    issuers: { main: { issuer: provider.issuer, audience: provider.audience, introspection } },
    rules: [
      { id: 'gold', path: '/gold', when: 'token.plan == "gold"' },
      { id: 'free', path: '/free', when: 'token.plan == "free"' },
    ],
  });
  it.each(['plain', '1e0', '1.0'])('reads the response, whatever the JWT has: jti %s', async (jti) => {
    const headers = bearer(await provider.sign({ plan: 'gold', jti }));
    const statuses = ['/free', '/gold'].map(async (path) => (await gate.ask({ path, ...headers })).status);
    expect(await Promise.all(statuses)).toEqual([200, 403]);
  });
});

it.each([
  ['missing', undefined],
  ['empty', '\n'],
])('a secret file that is %s at startup → 78, and the file is named', async (what, content) => {
  const file = join(folder, what);
  if (content !== undefined) await writeFile(file, content);
  const started = openGate(provider, writeRules({ clientSecretFile: file }), environment);
  const stderr = expect.stringContaining(`clientSecretFile ${file}`);
  await expect(started).rejects.toMatchObject({ end: { code: 78 }, stderr });
});
