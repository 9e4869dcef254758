import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { calculateJwkThumbprint } from 'jose';
import { describe, expect, it } from 'vitest';
import { thumbprint } from '../../../src/core/jose/jwk.ts';
import { createProof, readProofKey } from '../../../src/core/jose/signed-proof.ts';
import { createResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import { createTestIssuer, type ProofAlg } from '../../../src/testing/index.ts';
import { judge } from '../../testing/judge.ts';

const issuer = createTestIssuer();
const url = 'https://api.test/messages';
const pairs: readonly (readonly [ProofAlg, () => { readonly privateKey: KeyObject }])[] = [
  ['ES256', () => generateKeyPairSync('ec', { namedCurve: 'P-256' })],
  ['ES384', () => generateKeyPairSync('ec', { namedCurve: 'P-384' })],
  ['EdDSA', () => generateKeyPairSync('ed25519')],
  ['RS256', () => generateKeyPairSync('rsa', { modulusLength: 2048 })],
];

describe.each(pairs)('a private key for %s', (alg, make) => {
  const { privateKey } = make();
  const server = createResourceServer({
    issuers: [issuer],
    audience: issuer.audience,
    dpop: { mode: 'required', algorithms: [alg] },
  });

  it.each([
    ['PEM', privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()],
    ['a JWK with other members', { ...privateKey.export({ format: 'jwk' }), kid: 'k', use: 'sig' }],
  ])('%s → proofs that a resource server accepts', async (_, text) => {
    const key = readProofKey(text);
    expect(key.alg).toBe(alg);
    expect(thumbprint(key.publicJwk)).toBe(await calculateJwkThumbprint(privateKey.export({ format: 'jwk' }) as never));
    const token = issuer.token({ cnf: { jkt: thumbprint(key.publicJwk) } });
    for (const target of [`${url}?a=b#c`, new URL(`https://user:pass@api.test/messages?a=b`)]) {
      const headers = {
        authorization: `DPoP ${token}`,
        dpop: createProof(key, { url: target, token }, Date.now() / 1000),
      };
      expect(await judge(server, { headers })).toBe('accepted');
    }
  });
});

describe('a key that proofs cannot use', () => {
  const p521 = generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey.export({ type: 'pkcs8', format: 'pem' });
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
  it.each([
    ['P-521', p521.toString()],
    ['a JWK whose alg is not for proofs', { ...rsa, alg: 'RS512' }],
    ['text', 'secret text'],
  ])('%s → TypeError without the key', (_, value) => {
    expect(() => readProofKey(value)).toThrow(TypeError);
    expect(() => readProofKey(value)).not.toThrow(/secret/);
  });
});
