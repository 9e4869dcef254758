import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { failures } from '../../src/failures.ts';
import { algs, boundToken, goodClaims, judge, judgeBearer, judgeProof, mint, prove } from './judging.ts';
import { configureProperties } from './settings.ts';
import { changesOf, encodeJson, textChange } from './token-texts.ts';

configureProperties();

/** A reason of the closed table, or `accepted`; any other error has failed the test before. */
function expectVerdict(verdict: string): void {
  if (verdict !== 'accepted') expect(Object.hasOwn(failures, verdict)).toBe(true);
}

const headerNames = ['alg', 'typ', 'kid', 'crit', 'b64', 'zip', 'jwk', 'jku', 'x5c'];
const claimNames = ['iss', 'aud', 'sub', 'exp', 'nbf', 'iat', 'scope', 'cnf'];
const proofClaims = ['jti', 'htm', 'htu', 'iat', 'ath', 'nonce'];
const changes = fc.array(textChange, { minLength: 1, maxLength: 6 });
const apply = (text: string, all: readonly ((text: string) => string)[]): string =>
  all.reduce((changed, change) => change(changed), text);

describe('what nobody has sent before', () => {
  it('good token and good proof → accepted', () => {
    for (const alg of algs) expect(judgeBearer(mint(alg))).toBe('accepted');
    expect(judgeProof(prove())).toBe('accepted');
  });

  it('any header lines → a verdict', () => {
    const value = fc.string({ unit: 'binary', maxLength: 300 });
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
    fc.assert(fc.property(headers, (sent) => expectVerdict(judge(sent))));
  });

  it('any URL and method → a verdict', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.webUrl(),
      fc.webPath().map((path) => `http://a${path}`),
    );
    const headers = { authorization: `DPoP ${boundToken}`, dpop: prove() };
    fc.assert(fc.property(text, fc.string(), (url, method) => expectVerdict(judge(headers, { url, method }))));
  });

  it('any header and claims of a token, signed by our key → a verdict', () => {
    fc.assert(
      fc.property(fc.constantFrom(...algs), changesOf(headerNames), changesOf(claimNames), (alg, header, claims) => {
        expectVerdict(judgeBearer(mint(alg, header, { ...goodClaims, ...claims })));
      }),
    );
  });

  it('any characters of a token changed → a verdict, and never accepted', () => {
    const token = mint('ES256');
    fc.assert(
      fc.property(changes, (all) => {
        const changed = apply(token, all);
        fc.pre(changed !== token && changed.trimStart() !== token);
        expect(judgeBearer(changed)).not.toBe('accepted');
      }),
    );
  });

  it('any JSON text changed under a good signature → a verdict', () => {
    const header = JSON.stringify({ alg: 'RS256', kid: 'RS256' });
    const parts = fc.tuple(changes, changes).map(([a, b]) => {
      const texts = [apply(header, a), apply(JSON.stringify(goodClaims), b)];
      return texts.map((text) => Buffer.from(text, 'latin1').toString('base64url'));
    });
    fc.assert(fc.property(parts, ([head, claims]) => expectVerdict(judgeBearer(`${head}.${claims}.AAAA`))));
  });

  it('any header and claims of a proof, signed by its key → a verdict', () => {
    const names = ['alg', 'typ', 'jwk', 'crit'];
    fc.assert(
      fc.property(changesOf(names), changesOf(proofClaims), (header, claims) => {
        expectVerdict(judgeProof(prove(claims, header)));
      }),
    );
  });

  it('any characters of a proof changed → a verdict, and never accepted', () => {
    const proof = prove();
    fc.assert(
      fc.property(changes, (all) => {
        const changed = apply(proof, all);
        fc.pre(changed !== proof);
        expect(judgeProof(changed)).not.toBe('accepted');
      }),
    );
  });
});

describe('one byte of a good token', () => {
  // Every position, so that none is left to chance; the byte that takes its place is by the seed.
  it.each(algs)('%s: any position, another byte → refused', (alg) => {
    const token = mint(alg);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 255 }), (difference) => {
        for (let at = 0; at < token.length; at++) {
          const byte = String.fromCharCode((token.charCodeAt(at) + difference) % 256);
          // A space in front belongs to the header line, not to the token (RFC 9110 §11.4).
          if (at === 0 && byte === ' ') continue;
          expect(judgeBearer(token.slice(0, at) + byte + token.slice(at + 1))).not.toBe('accepted');
        }
      }),
      { numRuns: 3 },
    );
  });

  it('of a good proof: any position, another byte → refused', () => {
    const proof = prove();
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 255 }), (difference) => {
        for (let at = 0; at < proof.length; at++) {
          const byte = String.fromCharCode((proof.charCodeAt(at) + difference) % 256);
          expect(judgeProof(proof.slice(0, at) + byte + proof.slice(at + 1))).not.toBe('accepted');
        }
      }),
      { numRuns: 3 },
    );
  });

  it.each(algs)('%s: any bit of the signature → refused', (alg) => {
    const token = mint(alg);
    const dot = token.lastIndexOf('.');
    const signature = Buffer.from(token.slice(dot + 1), 'base64url');
    for (let bit = 0; bit < signature.length * 8; bit++) {
      const turned = Buffer.from(signature);
      turned.writeUInt8(turned.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      expect(judgeBearer(`${token.slice(0, dot)}.${turned.toString('base64url')}`)).toBe('invalid_signature');
    }
  });

  it('any other claims under the same signature → refused', () => {
    const [header, , signature] = mint('RS256').split('.');
    fc.assert(
      fc.property(changesOf(claimNames), (claims) => {
        const text = encodeJson({ ...goodClaims, ...claims });
        fc.pre(text !== encodeJson(goodClaims));
        expect(judgeBearer(`${header}.${text}.${signature}`)).not.toBe('accepted');
      }),
    );
  });
});
