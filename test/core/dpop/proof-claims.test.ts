import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { proofClaimChecks } from '../../../src/core/dpop/proof-checks.ts';
import {
  accept,
  change,
  claims,
  goodClaims,
  judge,
  judgeCase,
  mint,
  now,
  refusalOf,
  token,
  verify,
} from '../../support/proof-judge.ts';
import { hashToken } from '../../support/proofs.ts';

describe('all checks of the claims, as an explanation runs them', () => {
  const facts = { method: 'GET', url: { origin: 'https://api.example.com', path: '/things' }, ath: 'a', now };
  const failed = (wrong: Readonly<Record<string, unknown>>) =>
    proofClaimChecks.filter(({ passes }) => !passes({ claims: { ...goodClaims, ath: 'a', ...wrong }, request: facts }));

  it.each([
    ['nothing', {}, []],
    ['a URL that is a number', { htu: 7 }, ['proof_htu_form', 'proof_url']],
    ['a method that is a list', { htm: ['GET'] }, ['proof_htm_form', 'proof_method']],
    ['a time that is a text', { iat: 'now' }, ['proof_iat_form', 'proof_age', 'proof_lead']],
  ])('%s is wrong → none throws, and these fail', (_case, wrong, ids) =>
    expect(failed(wrong).map(({ id }) => id)).toEqual(ids),
  );

  it('a URL that is a number is not shown', () => {
    const [, url] = failed({ htu: 7 });
    const { context } = url?.details?.({ claims: { htu: 7 }, request: facts }) ?? {};
    expect(context).toMatchObject({ expected: 'https://api.example.com/things', received: '(not a URL)' });
  });
});

describe('the claims of a proof', () => {
  it.each([
    ['jti of 256 characters', 'accepted', claims({ jti: 'j'.repeat(256) })],
    ['jti of one character', 'accepted', claims({ jti: 'j' })],
    ['jti a UUID', 'accepted', claims({ jti: randomUUID() })],
    ['jti not ASCII', 'accepted', claims({ jti: 'ключ' })],
    ['htm GET for HEAD', 'proof_method_mismatch', change({}, { method: 'HEAD' })],
    ['htm HEAD for HEAD', 'accepted', change({ claims: { htm: 'HEAD' } }, { method: 'HEAD' })],
    ['htm of a method of its own', 'accepted', change({ claims: { htm: 'pUrGe' } }, { method: 'pUrGe' })],
    ['iat above 10^11', 'malformed_proof_claims', claims({ iat: 1e11 + 1 })],
    ['iat 10^11', 'proof_in_future', claims({ iat: 1e11 })],
    ['iat 0', 'proof_too_old', claims({ iat: 0 })],
    ['iat a moment more than 300 s ago', 'proof_too_old', claims({ iat: now - 300.001 })],
    ['iat 300 s ago', 'accepted', claims({ iat: now - 300 })],
    ['iat a fraction', 'accepted', claims({ iat: now - 0.5 })],
    ['iat 30 s ahead', 'accepted', claims({ iat: now + 30 })],
    ['iat a moment more than 30 s ahead', 'proof_in_future', claims({ iat: now + 30.001 })],
    ['iat 31 s ahead', 'proof_in_future', claims({ iat: now + 31 })],
    ['exp passed and nbf ahead, which are no claims of a proof', 'accepted', claims({ exp: 1, nbf: now + 999 })],
    [
      'ath in hexadecimal',
      'proof_token_mismatch',
      claims({ ath: Buffer.from(hashToken(token), 'base64url').toString('hex') }),
    ],
    ['ath cut off', 'proof_token_mismatch', claims({ ath: hashToken(token).slice(0, 42) })],
    ['ath the token itself', 'proof_token_mismatch', claims({ ath: token })],
    ['another token with the proof', 'proof_token_mismatch', change({}, { ath: hashToken(`${token}a`) })],
    ['nonce null', 'malformed_proof_claims', claims({ nonce: null })],
    ['nonce of anybody, where none is demanded', 'accepted', claims({ nonce: 'of another server' })],
    ['a claim nobody knows', 'accepted', claims({ somewhat: [{}] })],
  ])('%s → %s', (_name, reason, item) => expect(judgeCase(item, verify)).toBe(reason));

  it.each(['jti', 'htm', 'htu', 'iat', 'ath', 'nonce'])('%s malformed → the log names it', (claim) =>
    expect(refusalOf(mint({ claims: { [claim]: {} } }))?.context).toEqual({ claim }),
  );

  it('iat a fraction → remembered until exactly 300 s later', () => {
    const proof = mint({ claims: { iat: now - 0.25 } });
    const { expires } = accept(proof);
    expect(expires).toBe(now + 299.75);
    expect(judge(proof, { now: expires })).toBe('accepted');
    expect(judge(proof, { now: expires + 0.001 })).toBe('proof_too_old');
  });
});
