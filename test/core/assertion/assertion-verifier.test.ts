import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { assertionType } from '../../../src/core/assertion/assertion-claims.ts';
import { createAssertionVerifier } from '../../../src/core/assertion/assertion-verifier.ts';
import type { JsonObject } from '../../../src/core/jose/json.ts';
import { signCompact } from '../../../src/core/jose/sign.ts';
import { importAssertionKeys } from '../../../src/gate/identity/assertion-keys.ts';

const now = 1_800_000_000;
const issuer = 'https://gate.example/';
const audience = 'https://orders.internal/';
const makeKey = (kind: 'ec' | 'ed25519') => {
  const { privateKey } =
    kind === 'ec' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('ed25519');
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const { signer, jwks } = importAssertionKeys({ signing: { setting: 'ASSERTION_KEY', pem }, published: [] });
  if (signer === undefined) throw new Error('no signer');
  return { signer, jwks: JSON.parse(jwks) as { keys: object[] } };
};
const keys = { ES256: makeKey('ec'), EdDSA: makeKey('ed25519') };
const jwks = { keys: [...keys.ES256.jwks.keys, ...keys.EdDSA.jwks.keys] };
const verifier = createAssertionVerifier({ issuer, audience, jwks, now: () => now });

const usual = {
  iss: issuer,
  aud: audience,
  iat: now,
  exp: now + 60,
  sub: 'alice',
  caller_iss: 'https://id/',
  rule: 'all',
};

function write(claims: JsonObject = {}, header: JsonObject = {}, alg: keyof typeof keys = 'ES256'): string {
  const { signer } = keys[alg];
  return signCompact({ alg, kid: signer.kid, typ: assertionType, ...header }, { ...usual, ...claims }, signer);
}

describe('createAssertionVerifier', () => {
  it.each(['ES256', 'EdDSA'] as const)('assertion by %s → its claims', (alg) =>
    expect(verifier.verify(write({}, {}, alg))).resolves.toMatchObject({ sub: 'alice', rule: 'all' }),
  );

  it.each<readonly [string, string, string]>([
    ['an empty string', '', 'missing_credentials'],
    ['more than 16 KiB', 'a'.repeat(16_385), 'token_too_large'],
    ['two parts', 'a.b', 'malformed_token'],
    ['an access token type', write({}, { typ: 'at+jwt' }), 'unsupported_typ'],
    ['no type', write({}, { typ: undefined }), 'unsupported_typ'],
    ['alg RS256', write({}, { alg: 'RS256' }), 'unsupported_alg'],
    ['alg none', write({}, { alg: 'none' }), 'unsupported_alg'],
    ['crit', write({}, { crit: ['x'] }), 'unsupported_header'],
    ['no kid', write({}, { kid: undefined }), 'missing_kid'],
    ['kid of another key', write({}, { kid: 'other' }), 'unknown_kid'],
    ['kid of the key of another alg', write({}, { kid: keys.EdDSA.signer.kid }), 'unknown_kid'],
    ['another issuer', write({ iss: 'https://gate.example' }), 'invalid_issuer'],
    ['another audience', write({ aud: 'https://shop.internal/' }), 'invalid_audience'],
    ['aud as an array', write({ aud: [audience] }), 'invalid_audience'],
    ['a changed signature', `${write().slice(0, -4)}AAAA`, 'invalid_signature'],
    ['no exp', write({ exp: undefined }), 'missing_exp'],
    ['exp as a string', write({ exp: String(now) }), 'malformed_exp'],
    ['expired beyond the tolerance', write({ exp: now - 5 }), 'expired'],
    ['no iat', write({ iat: undefined }), 'missing_iat'],
    ['iat in milliseconds', write({ iat: now * 1000 }), 'malformed_iat'],
    ['iat in the future', write({ iat: now + 6 }), 'issued_in_future'],
    ['bound, without a request', write({ htm: 'GET', htu: 'https://api.example/' }), 'assertion_request_mismatch'],
  ])('%s → %s', (_input, assertion, reason) =>
    expect(verifier.verify(assertion)).rejects.toMatchObject({ name: 'AccessError', reason }),
  );

  it('expired within the tolerance → admitted', () =>
    expect(verifier.verify(write({ exp: now - 4 }))).resolves.toMatchObject({ sub: 'alice' }));

  const bound = write({ htm: 'POST', htu: 'https://api.example/orders/1' });
  it('bound to this request → its claims', async () => {
    const request = { method: 'POST', url: 'https://API.example:443/orders/1?page=2' };
    await expect(verifier.verify(bound, request)).resolves.toMatchObject({ htm: 'POST' });
  });
  it.each([
    ['another method', { method: 'GET', url: 'https://api.example/orders/1' }],
    ['another path', { method: 'POST', url: 'https://api.example/orders/2' }],
    ['another host', { method: 'POST', url: 'https://api2.example/orders/1' }],
    ['not a URL', { method: 'POST', url: '/orders/1' }],
  ])('bound to another request: %s → assertion_request_mismatch', (_input, request) =>
    expect(verifier.verify(bound, request)).rejects.toMatchObject({ reason: 'assertion_request_mismatch' }),
  );
  it.each([{ htm: 'POST' }, { htu: 'https://api.example/orders/1' }])(
    'only one of htm and htu → refused',
    async (one) => {
      const request = { method: 'POST', url: 'https://api.example/orders/1' };
      await expect(verifier.verify(write(one), request)).rejects.toMatchObject({
        reason: 'assertion_request_mismatch',
      });
    },
  );

  it.each<readonly [string, object]>([
    ['no issuer', { audience, jwks }],
    ['no audience', { issuer, jwks }],
    ['no keys', { issuer, audience }],
    ['http URL of keys', { issuer, audience, jwks: 'http://gate.example/jwks' }],
    ['a tolerance of 61 s', { issuer, audience, jwks, clockTolerance: 61 }],
    ['a misspelled option', { issuer, audience, jwks, audiences: [] }],
  ])('options with %s → TypeError', (_input, options) =>
    expect(() => createAssertionVerifier(options as never)).toThrow(TypeError),
  );
});

it.each([
  ['not PEM', 'x'],
  [
    'an RSA key',
    generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
  ],
  ['P-384', generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey.export({ type: 'pkcs8', format: 'pem' })],
])('ASSERTION_KEY with %s → an error that names the setting', (_input, pem) => {
  const signing = { setting: 'ASSERTION_KEY', pem: pem.toString() };
  expect(() => importAssertionKeys({ signing, published: [] })).toThrow(/^ASSERTION_KEY /);
});
