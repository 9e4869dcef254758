import { generateKeyPairSync } from 'node:crypto';
import { expect, it } from 'vitest';
import { createAssertionVerifier } from '../../src/core/assertion/assertion-verifier.ts';
import type { Access } from '../../src/core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../src/core/token/claims.ts';
import { importAssertionKeys } from '../../src/gate/identity/assertion-keys.ts';
import { createAssertions } from '../../src/gate/identity/assertions.ts';

const start = 1_800_000_000;
const pem = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString();
const { signer, jwks } = importAssertionKeys({ signing: { setting: 'ASSERTION_KEY', pem }, published: [] });
if (signer === undefined) throw new Error('no signer');
const issuer = 'https://gate.example/';
const audience = 'https://orders.internal/';
const target = { id: 'orders', assertion: { audience, isBound: false } };

function setUp(options: { readonly lifetime?: number; readonly claims?: readonly string[] } = {}) {
  const clock = { now: start };
  const now = () => clock.now;
  const { lifetime = 60, claims = [] } = options;
  const assertions = createAssertions({ signer: signer as never, issuer, lifetime, claims, now });
  const write = (...args: Parameters<typeof assertions.write>): string => String(assertions.write(...args)?.value);
  const { verify } = createAssertionVerifier({ issuer, audience, jwks: JSON.parse(jwks), now });
  return { clock, write, verify };
}

function accessWith(claims: Readonly<Record<string, unknown>> = {}, scopes: readonly string[] = ['read', 'write']) {
  const all = { iss: 'https://id.example/', sub: 'alice', aud: 'api', iat: start, exp: start + 3600, ...claims };
  return { claims: all, scopes: new Set(scopes), scheme: 'Bearer' } as unknown as Access<RegisteredClaims>;
}

it('a token → the claims of the gate and those that the rules list', async () => {
  const { write, verify } = setUp({ claims: ['email', 'groups', 'missing'] });
  const access = accessWith({
    azp: 'shop',
    email: 'a@example.com',
    groups: ['staff'],
    act: { sub: 'agent' },
    secret: 1,
  });
  await expect(verify(write(access, target))).resolves.toEqual({
    iss: issuer,
    aud: audience,
    iat: start,
    exp: start + 60,
    sub: 'alice',
    client_id: 'shop',
    scope: 'read write',
    caller_iss: 'https://id.example/',
    act: { sub: 'agent' },
    rule: 'orders',
    email: 'a@example.com',
    groups: ['staff'],
  });
});

it('absent claims → absent members', async () => {
  const { write, verify } = setUp();
  const claims = await verify(write(accessWith({ sub: undefined }, []), target));
  expect(Object.keys(claims).sort()).toEqual(['aud', 'caller_iss', 'exp', 'iat', 'iss', 'rule']);
});

it.each([
  ['expires before the assertion would', 10],
  ['is admitted only within the clock tolerance', -2],
])('a token that %s → exp of the token', async (_input, seconds) => {
  const { write, verify } = setUp();
  await expect(verify(write(accessWith({ exp: start + seconds }), target))).resolves.toMatchObject({
    exp: start + seconds,
  });
});

it('half of the lifetime → the cached assertion, then a new one', () => {
  const { clock, write } = setUp();
  const access = accessWith();
  const first = write(access, target);
  clock.now = start + 29;
  expect(write(access, target)).toBe(first);
  clock.now = start + 30;
  expect(write(access, target)).not.toBe(first);
});

it('a clock that is set back → a new assertion, which is not dated ahead', async () => {
  const { clock, write, verify } = setUp();
  const access = accessWith();
  write(access, target);
  clock.now = start - 3600;
  await expect(verify(write(access, target))).resolves.toMatchObject({ iat: clock.now });
});

it('another rule or another token → another assertion', async () => {
  const { write, verify } = setUp();
  const access = accessWith();
  write(access, target);
  await expect(verify(write(access, { ...target, id: 'refunds' }))).resolves.toMatchObject({ rule: 'refunds' });
  await expect(verify(write(accessWith({ sub: 'bob' }), target))).resolves.toMatchObject({ sub: 'bob' });
});

it('bound to a request → htm and htu, never cached', async () => {
  const { write, verify } = setUp();
  const access = accessWith();
  const url = { origin: 'https://api.example', prefix: '', path: '/orders/1' };
  const [get, post] = ['GET', 'POST'].map((method) => write(access, target, { method, url }));
  const request = { method: 'GET', url: 'https://api.example/orders/1' };
  await expect(verify(String(get), request)).resolves.toMatchObject({ htm: 'GET', htu: request.url });
  await expect(verify(String(post), request)).rejects.toMatchObject({ reason: 'assertion_request_mismatch' });
  expect(Object.keys(await verify(write(access, target)))).not.toContain('htm');
});

it('a published key that is also the signing key → once in the JWK set, without private members', () => {
  const other = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const published = [pem, other, other].map((each) => ({ setting: 'ASSERTION_KEYS_PUBLISHED', pem: each }));
  const set = JSON.parse(importAssertionKeys({ signing: { setting: 'ASSERTION_KEY', pem }, published }).jwks);
  expect(set.keys.map(({ alg }: { alg: string }) => alg)).toEqual(['ES256', 'EdDSA']);
  for (const key of set.keys) expect(key).not.toHaveProperty('d');
});
