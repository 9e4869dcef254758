import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { failures } from '../../src/core/failures.ts';
import { anyText } from '../support/any-text.ts';
import { algs, boundToken, goodClaims, judge, judgeBearer, judgeProof, mint, prove } from './judging.ts';
import { configureProperties } from './settings.ts';
import { apply, changes, changesOf, encodeJson } from './token-texts.ts';

configureProperties();

/** A reason of the closed table, or `accepted`; any other error has failed the test before. */
function expectVerdict(verdict: string): void {
  if (verdict !== 'accepted') expect(Object.hasOwn(failures, verdict)).toBe(true);
}

const headerNames = ['alg', 'typ', 'kid', 'crit', 'b64', 'zip', 'jwk', 'jku', 'x5c'];
const claimNames = ['iss', 'aud', 'sub', 'exp', 'nbf', 'iat', 'scope', 'cnf'];
const proofClaims = ['jti', 'htm', 'htu', 'iat', 'ath', 'nonce'];

describe('generated requests', () => {
  it('valid token and valid proof → accepted', async () => {
    for (const alg of algs) expect(await judgeBearer(mint(alg))).toBe('accepted');
    expect(await judgeProof(prove())).toBe('accepted');
  });

  it('any header lines → a verdict', async () => {
    const value = anyText({ maxLength: 300 });
    const word = fc.constantFrom(
      'Bearer',
      'DPoP',
      'bearer ',
      'dpop  ',
      ',',
      '"',
      '\\',
      ' ',
      mint('RS256'),
      'a=b',
      '\t',
    );
    const line = fc.oneof(
      value,
      fc.array(fc.oneof(word, value), { maxLength: 8 }).map((parts) => parts.join(' ')),
    );
    const names = ['authorization', 'dpop', 'host', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-prefix'];
    const headers = fc.dictionary(fc.constantFrom(...names), line);
    await fc.assert(fc.asyncProperty(headers, async (sent) => expectVerdict(await judge(sent))));
  });

  it('any URL and method → a verdict', async () => {
    const text = fc.oneof(
      anyText(),
      fc.webUrl(),
      fc.webPath().map((path) => `http://a${path}`),
    );
    const headers = { authorization: `DPoP ${boundToken}`, dpop: prove() };
    await fc.assert(
      fc.asyncProperty(text, fc.string(), async (url, method) => expectVerdict(await judge(headers, { url, method }))),
    );
  });

  it('any header and claims of a token, signed by our key → a verdict', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...algs),
        changesOf(headerNames),
        changesOf(claimNames),
        async (alg, header, claims) => {
          expectVerdict(await judgeBearer(mint(alg, header, { ...goodClaims, ...claims })));
        },
      ),
    );
  });

  it('any characters of a token changed → a verdict, and never accepted', async () => {
    const token = mint('ES256');
    await fc.assert(
      fc.asyncProperty(changes, async (all) => {
        const changed = apply(token, all);
        fc.pre(changed !== token && changed.trimStart() !== token);
        expect(await judgeBearer(changed)).not.toBe('accepted');
      }),
    );
  });

  it('any JSON text changed under a good signature → a verdict', async () => {
    const header = JSON.stringify({ alg: 'RS256', kid: 'RS256' });
    const parts = fc.tuple(changes, changes).map(([a, b]) => {
      const texts = [apply(header, a), apply(JSON.stringify(goodClaims), b)];
      return texts.map((text) => Buffer.from(text, 'latin1').toString('base64url'));
    });
    await fc.assert(
      fc.asyncProperty(parts, async ([head, claims]) => expectVerdict(await judgeBearer(`${head}.${claims}.AAAA`))),
    );
  });

  it('any header and claims of a proof, signed by its key → a verdict', async () => {
    const names = ['alg', 'typ', 'jwk', 'crit'];
    await fc.assert(
      fc.asyncProperty(changesOf(names), changesOf(proofClaims), async (header, claims) => {
        expectVerdict(await judgeProof(prove(claims, header)));
      }),
    );
  });

  it('any characters of a proof changed → a verdict, and never accepted', async () => {
    const proof = prove();
    await fc.assert(
      fc.asyncProperty(changes, async (all) => {
        const changed = apply(proof, all);
        fc.pre(changed !== proof);
        expect(await judgeProof(changed)).not.toBe('accepted');
      }),
    );
  });
});

describe('one byte of a valid token', () => {
  // Every position, so that none is left to chance; the byte that takes its place is by the seed.
  it.each(algs)('%s: any position, another byte → refused', async (alg) => {
    const token = mint(alg);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 255 }), async (difference) => {
        for (let at = 0; at < token.length; at++) {
          const byte = String.fromCharCode((token.charCodeAt(at) + difference) % 256);
          // A space in front belongs to the header line, not to the token (RFC 9110 §11.4).
          if (at === 0 && byte === ' ') continue;
          expect(await judgeBearer(token.slice(0, at) + byte + token.slice(at + 1))).not.toBe('accepted');
        }
      }),
      { numRuns: 3 },
    );
  });

  it('of a valid proof: any position, another byte → refused', async () => {
    const proof = prove();
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 255 }), async (difference) => {
        for (let at = 0; at < proof.length; at++) {
          const byte = String.fromCharCode((proof.charCodeAt(at) + difference) % 256);
          expect(await judgeProof(proof.slice(0, at) + byte + proof.slice(at + 1))).not.toBe('accepted');
        }
      }),
      { numRuns: 3 },
    );
  });

  it.each(algs)('%s: any bit of the signature → refused', async (alg) => {
    const token = mint(alg);
    const dot = token.lastIndexOf('.');
    const signature = Buffer.from(token.slice(dot + 1), 'base64url');
    for (let bit = 0; bit < signature.length * 8; bit++) {
      const turned = Buffer.from(signature);
      turned.writeUInt8(turned.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      expect(await judgeBearer(`${token.slice(0, dot)}.${turned.toString('base64url')}`)).toBe('invalid_signature');
    }
  });

  it('any other claims under the same signature → refused', async () => {
    const [header, , signature] = mint('RS256').split('.');
    await fc.assert(
      fc.asyncProperty(changesOf(claimNames), async (claims) => {
        const text = encodeJson({ ...goodClaims, ...claims });
        fc.pre(text !== encodeJson(goodClaims));
        expect(await judgeBearer(`${header}.${text}.${signature}`)).not.toBe('accepted');
      }),
    );
  });
});
