import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeBase64url } from '../../../src/core/jose/json.ts';

describe('canonical spellings are decoded', () => {
  // RFC 4648 §10, and the two characters in which base64url differs.
  it.each([
    ['Zg', '66'],
    ['Zm8', '666f'],
    ['Zm9v', '666f6f'],
    ['Zm9vYg', '666f6f62'],
    ['Zm9vYmE', '666f6f6261'],
    ['Zm9vYmFy', '666f6f626172'],
    ['-_-_', 'fbffbf'],
    ['AA', '00'],
    ['AAA', '0000'],
    ['__8', 'ffff'],
  ])('%s → %s', (text, hex) => expect(decodeBase64url(text)?.toString('hex')).toBe(hex));
});

it.each([
  ['nothing', ''],
  ['padding, two', 'Zg=='],
  ['padding in the middle', 'Zg==Zg'],
  ['plus', '-_+_'],
  ['slash', '-/-_'],
  ['stray bits in the last of two', 'Zh'],
  ['stray bits in the last of three', 'Zm9'],
  ['five characters', 'Zm9vY'],
  ['letter whose low byte is Z', '\u015am9v'],
  ['full-width letters', '\uff3a\uff4d\uff19\uff56'],
  ['emoji', 'Zm9v😀'],
  ['byte order mark', '\ufeffZm9v'],
])('every other text is refused: %s: %j', (_, text) => expect(decodeBase64url(text)).toBeUndefined());

describe('properties', () => {
  const bytes = fc.uint8Array({ minLength: 1, maxLength: 64 }).map((array) => Buffer.from(array));
  const foreign = fc.constantFrom(...'=+/ \t\r\n\0.,?%é\u00a0\u015a');

  it('a foreign character anywhere is refused', () => {
    fc.assert(
      fc.property(bytes, foreign, fc.nat(), (value, character, position) => {
        const text = value.toString('base64url');
        const at = position % (text.length + 1);
        expect(decodeBase64url(text.slice(0, at) + character + text.slice(at))).toBeUndefined();
      }),
    );
  });

  it('the grammar of RFC 4648 §5 without padding and stray bits decides', () => {
    const canonical = /^(?=.)(?:[\w-]{4})*(?:[\w-][AQgw]|[\w-]{2}[AEIMQUYcgkosw048])?$/;
    const text = fc.string({ unit: fc.constantFrom(...'AEQgwZ09-_=+ '), maxLength: 9 });
    fc.assert(
      fc.property(text, (value) => (decodeBase64url(value) !== undefined) === canonical.test(value)),
      { numRuns: 5000 },
    );
  });
});
