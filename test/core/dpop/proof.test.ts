import { SignJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { createNonces } from '../../../src/core/dpop/nonce.ts';
import { createProofVerifier } from '../../../src/core/dpop/proof.ts';
import { proofAlgorithms } from '../../../src/core/jose/jws.ts';
import {
  accept,
  allAlgorithms,
  change,
  goodClaims,
  judge,
  judgeCase,
  key,
  keys,
  mint,
  now,
  otherKey,
  refusalOf,
  token,
  url,
  verify,
} from '../../support/proof-judge.ts';
import { encode, hashToken, makeProofKey, signText, thumbprintOf } from '../../support/proofs.ts';

describe('a valid proof', () => {
  it('says what has to be remembered, and how long', () => {
    expect(
      verify({ proof: mint(), method: 'GET', url, ath: hashToken(token), jkt: thumbprintOf(key.jwk), now }),
    ).toStrictEqual({ jkt: thumbprintOf(key.jwk), jti: 'the-first', expires: now + 300 });
  });

  it.each(allAlgorithms)('%s, signed by jose → accepted, and again with the cached key', async (alg) => {
    const signer = alg === 'ES256' ? key : keys[alg === 'PS256' ? 'RS256' : (alg as keyof typeof keys)]; // the names are equal
    const proof = await new SignJWT(goodClaims)
      .setProtectedHeader({ typ: 'dpop+jwt', alg, jwk: { ...signer.jwk } })
      .sign(signer.privateKey);
    const request = { jkt: thumbprintOf(signer.jwk) };
    const verifier = createProofVerifier({ algorithms: allAlgorithms });
    expect([judge(proof, request, verifier), judge(proof, request, verifier)]).toEqual(['accepted', 'accepted']);
    expect(judge(`${proof.slice(0, -6)}AAAAAA`, request, verifier)).toBe('invalid_proof_signature');
  });

  it('more keys than are kept → each is accepted', () => {
    const verifier = createProofVerifier({ cachedKeys: 2 });
    for (const each of [key, otherKey, makeProofKey(), key, otherKey]) {
      expect(judge(mint({ key: each }), { jkt: thumbprintOf(each.jwk) }, verifier)).toBe('accepted');
    }
  });
});

describe('the shape of a proof', () => {
  const good = mint();
  const [first = '', second = ''] = good.split('.');
  const long = (size: number): string => {
    const rest = mint({ header: { pad: '' } }).length;
    return mint({ header: { pad: 'x'.repeat(Math.floor(((size - rest) * 3) / 4)) } });
  };

  it.each([
    ['two headers joined with a comma', 'multiple_dpop_proofs', `${good},${mint()}`],
    ['a comma alone', 'multiple_dpop_proofs', ','],
    ['nothing', 'malformed_proof', ''],
    ['two parts', 'malformed_proof', `${first}.${second}`],
    ['a header that is no JSON', 'malformed_proof', mint({ headerText: '{typ}' })],
    [
      'a jwk with a member twice',
      'malformed_proof',
      mint({
        headerText: JSON.stringify({ typ: 'dpop+jwt', alg: 'ES256', jwk: key.jwk }).replace(
          '"kty":"EC"',
          '"kty":"EC","kty":"EC"',
        ),
      }),
    ],
    ['claims that are a string', 'malformed_proof', mint({ claimsText: '"jti"' })],
    [
      'claims with a member twice',
      'malformed_proof',
      mint({ claimsText: JSON.stringify(goodClaims).replace('{', '{"htm":"POST",') }),
    ],
    [
      'claims in bad UTF-8',
      'malformed_proof',
      `${first}.${Buffer.from('7b22ff223a317d', 'hex').toString('base64url')}.AA`,
    ],
    ['the largest that is allowed', 'accepted', long(12_288)],
    ['more than 12 KiB', 'proof_too_large', `${long(12_288)}AAAA`],
  ])('%s → %s', (_name, reason, proof) => expect(judge(proof)).toBe(reason));

  it.each([
    ['a word', 'opaque', 'proof'],
    ['two parts', 'parts', `${first}.${second}`],
    ['padding', 'encoding', `${good}==`],
  ])('%s → the log says %s', (_name, defect, proof) => expect(refusalOf(proof)?.context).toEqual({ defect }));

  it('the largest that is allowed has close to 12288 characters', () => {
    expect(long(12_288).length).toBeGreaterThan(12_280);
    expect(long(12_288).length).toBeLessThanOrEqual(12_288);
  });
});

describe('the key of a proof', () => {
  it.each([
    ['another key than the token is bound to', 'proof_key_mismatch', change({ key: otherKey })],
    ['a token bound to another key', 'proof_key_mismatch', change({}, { jkt: thumbprintOf(otherKey.jwk) })],
    ['a thumbprint in other case', 'proof_key_mismatch', change({}, { jkt: thumbprintOf(key.jwk).toUpperCase() })],
    ['a thumbprint cut off', 'proof_key_mismatch', change({}, { jkt: thumbprintOf(key.jwk).slice(0, 42) })],
    ['signed by another key than its jwk', 'invalid_proof_signature', change({ signer: otherKey })],
  ])('%s → %s', (_name, reason, item) => expect(judgeCase(item, createProofVerifier())).toBe(reason));

  it.each([
    ['another jwk', 'proof_key_mismatch', change({ key: otherKey, signer: key })],
    ['another typ', 'unsupported_proof_typ', change({ header: { typ: 'jwt' } })],
    ['another alg', 'unsupported_proof_alg', change({ header: { alg: 'ES384' } })],
    ['the private key', 'private_proof_jwk', change({ header: { jwk: { ...key.jwk, d: 'AQAB' } } })],
    ['one more member', 'accepted', change({ header: { more: true } })],
    ['the signature of another key', 'invalid_proof_signature', change({ signer: otherKey })],
  ])('cached, and then a proof with %s → %s', (_name, reason, item) => {
    const verifier = createProofVerifier();
    expect(judge(mint(), {}, verifier)).toBe('accepted');
    expect(judgeCase(item, verifier)).toBe(reason);
    expect(judge(mint(), {}, verifier)).toBe('accepted');
  });

  it('an invalid key → reported, and never cached', () => {
    const verifier = createProofVerifier();
    const broken = { ...key.jwk, y: key.jwk.x };
    const request = { jkt: thumbprintOf(broken) };
    for (const _time of ['first', 'second']) {
      expect(refusalOf(mint({ header: { jwk: broken } }), request, verifier)).toMatchObject({
        reason: 'malformed_proof_jwk',
        context: { defect: 'not_on_curve' },
      });
    }
  });

  const [first = '', second = '', third = ''] = mint().split('.');
  const der = Buffer.from(`3006020101020101`, 'hex').toString('base64url');

  it.each([
    ['zeros', Buffer.alloc(64).toString('base64url')],
    ['one byte', 'AA'],
    ['cut off', third.slice(0, 80)],
    ['with a byte more', Buffer.concat([Buffer.from(third, 'base64url'), Buffer.alloc(1)]).toString('base64url')],
    ['in DER', der],
    ['of another proof', mint({ claims: { jti: 'another' } }).split('.')[2] ?? ''],
    ['over the claims alone', signText(second, 'ES256', key)],
  ])('a signature %s → invalid_proof_signature', (_name, signature) =>
    expect(judge(`${first}.${second}.${signature}`)).toBe('invalid_proof_signature'),
  );

  it('claims changed after signing → invalid_proof_signature', () => {
    const changed = encode(JSON.stringify({ ...goodClaims, jti: 'the-second' }));
    expect(judge(`${first}.${changed}.${third}`)).toBe('invalid_proof_signature');
  });
});

describe('the nonce of a proof', () => {
  const nonces = createNonces({ secret: 'a secret of thirty-two characters' });
  const demanding = createProofVerifier({ nonces });
  const foreign = createNonces({ secret: 'another secret of thirty-two characters' });

  it.each([
    ['absent', 'missing_proof_nonce', undefined],
    ['empty', 'invalid_proof_nonce', ''],
    ['a number', 'malformed_proof_claims', 1],
    ['current', 'accepted', nonces.issue(now)],
    ['previous', 'accepted', nonces.issue(now - 120)],
    ['two steps old', 'invalid_proof_nonce', nonces.issue(now - 240)],
    ['of the next step', 'invalid_proof_nonce', nonces.issue(now + 120)],
    ['of another secret', 'invalid_proof_nonce', foreign.issue(now)],
  ])('%s → %s', (_name, reason, nonce) => expect(judge(mint({ claims: { nonce } }), {}, demanding)).toBe(reason));

  it('missing or old → use_dpop_nonce on the wire', () => {
    expect(refusalOf(mint(), {}, demanding)?.failure.error).toBe('use_dpop_nonce');
    expect(refusalOf(mint({ claims: { nonce: 'old' } }), {}, demanding)?.failure.error).toBe('use_dpop_nonce');
  });

  it('missing in a proof that is wrong otherwise → what is wrong otherwise', () => {
    expect(judge(mint({ signer: otherKey }), {}, demanding)).toBe('invalid_proof_signature');
    expect(judge(mint({ claims: { htm: 'POST' } }), {}, demanding)).toBe('proof_method_mismatch');
  });

  it.each([
    ['current', nonces.issue(now), undefined],
    ['previous', nonces.issue(now - 120), nonces.issue(now)],
  ])('%s → the nonce for the response', (_name, nonce, fresh) => {
    const proof = mint({ claims: { nonce } });
    expect(accept(proof, {}, demanding).nonce).toBe(fresh);
  });
});

const known = `algorithms: write any of ${proofAlgorithms.join(', ')}`;

it.each([
  ['no algorithm', 'algorithms: name at least one, in a list', []],
  ['HS256', known, ['ES256', 'HS256']],
  ['none', known, ['none']],
  ['ES512', known, ['ES512']],
])('options that cannot work: %s → TypeError: %s', (_name, message, algorithms) =>
  expect(() => createProofVerifier({ algorithms })).toThrow(new TypeError(message)),
);
