import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyText } from '../../support/any-text.ts';
import { judge, key, mint, otherKey, refusalOf, token } from '../../support/proof-judge.ts';

describe('properties', () => {
  it('any single character of a valid proof changed → refused', () => {
    const proof = mint();
    const character = fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code));
    fc.assert(
      fc.property(fc.nat(proof.length - 1), character, (index, replacement) => {
        fc.pre(proof[index] !== replacement);
        const changed = proof.slice(0, index) + replacement + proof.slice(index + 1);
        expect(judge(changed)).not.toBe('accepted');
      }),
      { numRuns: 2_000 },
    );
  });

  it('any single character left out or doubled → refused', () => {
    const proof = mint();
    fc.assert(
      fc.property(fc.nat(proof.length - 1), (index) => {
        expect(judge(proof.slice(0, index) + proof.slice(index + 1))).not.toBe('accepted');
        expect(judge(proof.slice(0, index + 1) + proof.slice(index))).not.toBe('accepted');
      }),
    );
  });

  it('any string → refused for one of the reasons, never another error', () => {
    fc.assert(
      fc.property(anyText(), (text) => {
        expect(judge(text)).not.toBe('accepted');
      }),
    );
  });

  it('any JSON for header and claims → refused for one of the reasons, never another error', () => {
    fc.assert(
      fc.property(fc.json(), fc.json(), fc.boolean(), (headerText, claimsText, isGood) => {
        const proof = mint({ claimsText, ...(!isGood && { headerText }) });
        expect(judge(proof)).not.toBe('accepted');
      }),
      { numRuns: 200 },
    );
  });

  it('nothing of a proof → in what is said or logged of its refusal', () => {
    const proofs = [mint({ signer: otherKey }), mint({ claims: { jti: 'x'.repeat(300) } }), mint({ key: otherKey })];
    for (const proof of proofs) {
      const error = refusalOf(proof);
      const said = `${error?.message} ${JSON.stringify(error?.context)} ${String(error?.cause)}`;
      for (const part of [...proof.split('.'), String(key.jwk['x']), token, 'xxx']) expect(said).not.toContain(part);
    }
  });
});
