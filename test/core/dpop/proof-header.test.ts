import { describe, expect, it } from 'vitest';
import { createProofVerifier } from '../../../src/core/dpop/proof.ts';
import {
  change,
  header,
  judge,
  judgeCase,
  jwk,
  key,
  keys,
  mint,
  refusalOf,
  signedBy,
  verify,
  verifyAll,
} from '../../support/proof-judge.ts';
import { encode, privateJwk } from '../../support/proofs.ts';

describe('the header of a proof', () => {
  const secret = { kty: 'oct', k: encode('a secret of thirty-two characters') };

  it.each([
    ['typ null', 'unsupported_proof_typ', header({ typ: null })],
    ['alg absent', 'unsupported_proof_alg', change({ header: { alg: undefined }, signAs: 'ES256' })],
    ['alg HS256 with a symmetric jwk', 'unsupported_proof_alg', header({ alg: 'HS256', jwk: secret })],
    ['alg ES512', 'unsupported_proof_alg', signedBy('ES512', keys['P-521'])],
    ['alg RS512', 'unsupported_proof_alg', header({ alg: 'RS512' })],
    ['alg of every object', 'unsupported_proof_alg', header({ alg: 'constructor' })],
    ['crit empty', 'unsupported_proof_header', header({ crit: [] })],
    ['b64 true', 'unsupported_proof_header', header({ b64: true })],
    ['kid, which says nothing', 'accepted', header({ kid: 'a' })],
    ['a parameter nobody knows', 'accepted', header({ somewhat: { more: [1] } })],
    ['x5u and jku, which are never fetched', 'accepted', header({ x5u: 'https://a/', jku: 'https://a/' })],
    ['jwk absent, kid in its place', 'malformed_proof_jwk', header({ jwk: undefined, kid: 'a' })],
    ['jwk empty', 'malformed_proof_jwk', header({ jwk: {} })],
    ['jwk of RSA private', 'private_proof_jwk', signedBy('RS256', keys.RS256, { jwk: privateJwk(keys.RS256) })],
    ['jwk with other primes', 'private_proof_jwk', jwk({ oth: [] })],
    ['jwk without kty', 'malformed_proof_jwk', jwk({ kty: undefined })],
    ['jwk of P-384 for ES256', 'malformed_proof_jwk', header({ jwk: keys.ES384.jwk })],
    ['jwk of P-521 for ES384', 'malformed_proof_jwk', change({ key: keys['P-521'], header: { alg: 'ES384' } })],
    ['jwk of EC for RS256', 'malformed_proof_jwk', change({ header: { alg: 'RS256' }, signAs: 'ES256' })],
    ['jwk of EC for EdDSA', 'malformed_proof_jwk', change({ header: { alg: 'EdDSA' }, signAs: 'ES256' })],
    [
      'jwk of X25519',
      'malformed_proof_jwk',
      change({ header: { alg: 'EdDSA', jwk: { ...keys.EdDSA.jwk, crv: 'X25519' } }, key: keys.EdDSA }),
    ],
    ['jwk that is no point of the curve', 'malformed_proof_jwk', jwk({ y: key.jwk['x'] })],
    ['jwk of RSA with 1024 bits', 'malformed_proof_jwk', signedBy('RS256', keys.RS1024)],
    [
      'jwk of RSA for the other padding',
      'malformed_proof_jwk',
      signedBy('RS256', keys.RS256, { jwk: { ...keys.RS256.jwk, alg: 'PS256' } }),
    ],
    ['jwk with the same alg, use and kid', 'accepted', jwk({ alg: 'ES256', use: 'sig', kid: 'a' })],
    [
      'jwk of RSA with a crv, which says nothing there',
      'accepted',
      signedBy('RS256', keys.RS256, { jwk: { ...keys.RS256.jwk, crv: 'P-256' } }),
    ],
    ['jwk with what browsers export', 'accepted', jwk({ ext: true, key_ops: ['verify'] })],
  ])('%s → %s', (_name, reason, item) => expect(judgeCase(item, verifyAll)).toBe(reason));

  it.each([
    ['crit', { parameter: 'crit' }, header({ crit: [] })],
    ['b64', { parameter: 'b64' }, header({ b64: true })],
    ['zip', { parameter: 'zip' }, header({ zip: 'DEF' })],
    ['no jwk', { defect: 'malformed' }, header({ jwk: undefined })],
    ['a jwk that is a list', { defect: 'malformed' }, header({ jwk: [] })],
    ['a jwk of another alg', { defect: 'alg_mismatch' }, header({ jwk: keys.RS256.jwk })],
    ['a jwk that is no point of the curve', { defect: 'not_on_curve', member: 'x' }, jwk({ y: key.jwk['x'] })],
  ])('%s → the log says %j', (_name, context, { changes, request }) =>
    expect(refusalOf(mint(changes), request)?.context).toEqual(context),
  );

  it.each(['ES384', 'EdDSA', 'RS256'] as const)('alg %s when it is not enabled → unsupported_proof_alg', (alg) => {
    expect(judgeCase(signedBy(alg, keys[alg]), verify)).toBe('unsupported_proof_alg');
    expect(judgeCase(signedBy(alg, keys[alg]), verifyAll)).toBe('accepted');
  });

  it('a private jwk of a cached key → refused', () => {
    const verifier = createProofVerifier();
    expect(judge(mint(), {}, verifier)).toBe('accepted');
    expect(judge(mint({ header: { jwk: privateJwk(key) } }), {}, verifier)).toBe('private_proof_jwk');
  });
});
