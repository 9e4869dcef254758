import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyText } from '../../support/any-text.ts';
import { judge, key, mint, otherKey, refusalOf, token } from '../../support/proof-judge.ts';

describe('properties', () => {
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
