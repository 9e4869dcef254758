import { describe, expect, it } from 'vitest';
import { algorithms } from '../../../src/core/jose/jws.ts';
import { words } from '../../support/words.ts';

describe('the table of algorithms', () => {
  it('holds RS, PS, ES of 256 to 512, EdDSA, Ed25519 and ML-DSA, nothing else', () => {
    expect([...algorithms.keys()].sort()).toEqual(
      [
        ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519', 'PS256', 'PS384', 'PS512', 'RS256', 'RS384', 'RS512'],
        ...['ML-DSA-44', 'ML-DSA-65', 'ML-DSA-87'],
      ].sort(),
    );
  });

  it.each([
    ...words(`
      none None NONE HS256 HS384 HS512 rs256 RS1 ES256K ES521 eddsa ed25519 ML-DSA-45 RSA-OAEP A128KW dir constructor toString
      __proto__
    `),
    ...['', 'RS256 '],
  ])('%j → unknown', (name) => expect(algorithms.get(name)).toBeUndefined());

  // RFC 7518 §3.1 and §3.4, RFC 8037 §3.1
  it.each([
    ['RS256', 'RSA', undefined, undefined],
    ['RS384', 'RSA', undefined, undefined],
    ['RS512', 'RSA', undefined, undefined],
    ['PS256', 'RSA', undefined, undefined],
    ['PS384', 'RSA', undefined, undefined],
    ['PS512', 'RSA', undefined, undefined],
    ['ES256', 'EC', 'P-256', 64],
    ['ES384', 'EC', 'P-384', 96],
    ['ES512', 'EC', 'P-521', 132],
    ['EdDSA', 'OKP', 'Ed25519', 64],
  ])('%s → kty %s, crv %s, signatures of %s bytes', (name, kty, crv, signatureLength) => {
    const algorithm = algorithms.get(name);
    expect([algorithm?.kty, algorithm?.crv, algorithm?.signatureLength]).toEqual([kty, crv, signatureLength]);
  });
});
