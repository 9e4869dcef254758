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
    ['no claims', 'malformed_proof_claims', change({ claimsText: '{}' })],
    ['jti absent', 'malformed_proof_claims', claims({ jti: undefined })],
    ['jti empty', 'malformed_proof_claims', claims({ jti: '' })],
    ['jti null', 'malformed_proof_claims', claims({ jti: null })],
    ['jti a number', 'malformed_proof_claims', claims({ jti: 1 })],
    ['jti an array', 'malformed_proof_claims', claims({ jti: ['a'] })],
    ['jti of 257 characters', 'malformed_proof_claims', claims({ jti: 'j'.repeat(257) })],
    ['jti of 256 characters', 'accepted', claims({ jti: 'j'.repeat(256) })],
    ['jti of one character', 'accepted', claims({ jti: 'j' })],
    ['jti a UUID', 'accepted', claims({ jti: randomUUID() })],
    ['jti not ASCII', 'accepted', claims({ jti: 'ключ' })],
    ['htm absent', 'malformed_proof_claims', claims({ htm: undefined })],
    ['htm null', 'malformed_proof_claims', claims({ htm: null })],
    ['htm an array', 'malformed_proof_claims', claims({ htm: ['GET'] })],
    ['htm empty', 'proof_method_mismatch', claims({ htm: '' })],
    ['htm of another method', 'proof_method_mismatch', claims({ htm: 'POST' })],
    ['htm in small letters', 'proof_method_mismatch', claims({ htm: 'get' })],
    ['htm with a space', 'proof_method_mismatch', claims({ htm: 'GET ' })],
    ['htm GET for HEAD', 'proof_method_mismatch', change({}, { method: 'HEAD' })],
    ['htm HEAD for HEAD', 'accepted', change({ claims: { htm: 'HEAD' } }, { method: 'HEAD' })],
    ['htm of a method of its own', 'accepted', change({ claims: { htm: 'pUrGe' } }, { method: 'pUrGe' })],
    ['htu absent', 'malformed_proof_claims', claims({ htu: undefined })],
    ['htu null', 'malformed_proof_claims', claims({ htu: null })],
    ['htu a number', 'malformed_proof_claims', claims({ htu: 1 })],
    ['iat absent', 'malformed_proof_claims', claims({ iat: undefined })],
    ['iat null', 'malformed_proof_claims', claims({ iat: null })],
    ['iat a string', 'malformed_proof_claims', claims({ iat: `${now}` })],
    ['iat true', 'malformed_proof_claims', claims({ iat: true })],
    ['iat below 0', 'malformed_proof_claims', claims({ iat: -1 })],
    [
      'iat endless',
      'malformed_proof_claims',
      change({ claimsText: JSON.stringify(goodClaims).replace(`${now}`, '1e400') }),
    ],
    ['iat above 10^11', 'malformed_proof_claims', claims({ iat: 1e11 + 1 })],
    ['iat 10^11', 'proof_in_future', claims({ iat: 1e11 })],
    ['iat in milliseconds', 'malformed_proof_claims', claims({ iat: now * 1000 })],
    ['iat 0', 'proof_too_old', claims({ iat: 0 })],
    ['iat 301 s ago', 'proof_too_old', claims({ iat: now - 301 })],
    ['iat a moment more than 300 s ago', 'proof_too_old', claims({ iat: now - 300.001 })],
    ['iat 300 s ago', 'accepted', claims({ iat: now - 300 })],
    ['iat a fraction', 'accepted', claims({ iat: now - 0.5 })],
    ['iat 30 s ahead', 'accepted', claims({ iat: now + 30 })],
    ['iat a moment more than 30 s ahead', 'proof_in_future', claims({ iat: now + 30.001 })],
    ['iat 31 s ahead', 'proof_in_future', claims({ iat: now + 31 })],
    ['exp passed and nbf ahead, which are no claims of a proof', 'accepted', claims({ exp: 1, nbf: now + 999 })],
    ['ath absent', 'malformed_proof_claims', claims({ ath: undefined })],
    ['ath null', 'malformed_proof_claims', claims({ ath: null })],
    ['ath an array', 'malformed_proof_claims', claims({ ath: [hashToken(token)] })],
    ['ath empty', 'proof_token_mismatch', claims({ ath: '' })],
    ['ath of another token', 'proof_token_mismatch', claims({ ath: hashToken(`${token}a`) })],
    ['ath padded', 'proof_token_mismatch', claims({ ath: `${hashToken(token)}=` })],
    [
      'ath in hexadecimal',
      'proof_token_mismatch',
      claims({ ath: Buffer.from(hashToken(token), 'base64url').toString('hex') }),
    ],
    ['ath cut off', 'proof_token_mismatch', claims({ ath: hashToken(token).slice(0, 42) })],
    ['ath the token itself', 'proof_token_mismatch', claims({ ath: token })],
    ['another token with the proof', 'proof_token_mismatch', change({}, { ath: hashToken(`${token}a`) })],
    ['nonce a number, where none is demanded', 'malformed_proof_claims', claims({ nonce: 1 })],
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
