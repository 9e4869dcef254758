import { describe, expect, it } from 'vitest';
import { createWithhold, shorten, showText, showValue, toAscii } from '../../src/core/shown-text.ts';

describe('text from outside', () => {
  it.each([
    ['a control character', 'a\x1b[31mb\x07', 'a\\u{1b}[31mb\\u{7}'],
    ['a line break', 'a\r\nb', 'a\\u{d}\\u{a}b'],
    ['a control character of C1', 'a\x9bb', 'a\\u{9b}b'],
    ['a bidirectional control', 'a\u202eb\u2066c', 'a\\u{202e}b\\u{2066}c'],
    ['a zero-width character', 'a\u200bb\ufeff', 'a\\u{200b}b\\u{feff}'],
    ['a tag character', 'a\u{e0041}', 'a\\u{e0041}'],
    ['half a surrogate pair', 'a\ud800', 'a\\u{d800}'],
    ['plain text', 'https://idp.example/ä', 'https://idp.example/ä'],
    ['an emoji is a whole pair', '😀', '😀'],
  ])('%s', (_, text, shown) => expect(showText(text)).toBe(shown));

  it('is bounded, and says how long it was', () =>
    expect(showText('x'.repeat(1000))).toBe(`${'x'.repeat(160)}… (1000 characters)`));

  it.each([
    [undefined, 'absent'],
    [null, 'null'],
    [1, '1'],
    [['a', '\x07'], '["a","\\u0007"]'],
    ['text', 'text'],
  ])('%j is shown as %s', (value, shown) => expect(showValue(value)).toBe(shown));

  it('an identifier: first and last characters', () => {
    expect(shorten('kKguabcdefghijk9w')).toBe('kKgu…9w');
    expect(shorten('key-1')).toBe('key-1');
  });

  it('in ASCII: nothing else is left', () => expect(toAscii('a…ä\n😀')).toBe('a...\\u{e4}\n\\u{1f600}'));
});

describe('values that repeat a secret', () => {
  const withhold = createWithhold(['0123456789abcdefXYZ', 'short']);

  it('16 characters in a row → withheld', () => expect(withhold('aud is 123456789abcdefX!')).toMatch(/^\(withheld/));

  it('15 characters, or a short secret → shown', () => {
    expect(withhold('0123456789abcde is fine')).toBe('0123456789abcde is fine');
    expect(withhold('short')).toBe('short');
  });
});
