import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findInexact, isInexact, parseJsonObject } from '../../../src/core/jose/json.ts';
import { configureProperties } from '../../properties/settings.ts';
import { words } from '../../support/words.ts';

configureProperties();

const parse = (text: string) => parseJsonObject(Buffer.from(text));
const read = (number: string): unknown => parse(`{"a":${number}}`)?.['a'];

/** Numbers that a double holds, with the value that is read. */
const exact: readonly (readonly [text: string, value: number])[] = [
  ['0', 0],
  ['-0', -0],
  ['0e999', 0],
  ['0.0', 0],
  [`0.${'0'.repeat(400)}`, 0],
  ['1E3', 1000],
  ['1e+3', 1000],
  ['1e0000000000000000000003', 1000],
  ['1.50', 1.5],
  ['9007199254740991', 9007199254740991],
  ['-9007199254740991', -9007199254740991],
  ['9007199254740991.0', 9007199254740991],
  ['900719925474099.1e1', 9007199254740991],
  ['9007199254740990.5', 9007199254740990],
  ['0.10000000000000001', 0.1],
  ['1.0000000000000000', 1],
  ['1000000000000000.0', 1e15],
  ['0.00000000000000000012345678901234567', 1.2345678901234568e-19],
  ['1e-300', 1e-300],
  ['2.2250738585072014e-308', 2 ** -1022],
  ['1e-310', 1e-310],
  ['5e-324', 5e-324],
  ['50e-325', 5e-324],
];

/** Numbers that JSON holds and a double does not. */
const inexact: readonly string[] = [
  ...words(`
    9007199254740992 -9007199254740992 9007199254740993 9007199254740993.0 900719925474099.3e1 90071992547409930e-1
    9007199254740992.5 9007199254740991.5 9.1e15 1e16 1E+16 12345678901234567890 100000000000000000000 1e20 1e21
    1.7976931348623157e308 1e400 -1e400 1e99999999999999999999 1.0000000000000000001 1.00000000000000000
    1000.00000000000000 100000000000000000e-17 0.1000000000000000055 -0.1000000000000000055
    0.00000000000000000000123456789012345678 1e-400 -1e-400 1E-99999999999999999999 2e-324 4e-324
    1.2345678901234567e-320
  `),
  ...['9'.repeat(1000), `0.${'0'.repeat(400)}1`],
];

describe('one number', () => {
  it.each(exact)('%s → a number', (text, value) => {
    expect(read(text)).toBe(value);
    expect(isInexact(text)).toBe(false);
  });

  it.each(inexact)('%s → the string of its digits', (text) => {
    expect(read(text)).toBe(text);
    expect(isInexact(text)).toBe(true);
  });

  it.each(['.inf', '-.Inf', '.nan'])('%s, as YAML writes it → inexact', (text) => expect(isInexact(text)).toBe(true));

  it.each(['+12', '0x1F', '0o17', '.5'])('%s, as YAML writes it → exact', (text) =>
    expect(isInexact(text)).toBe(false),
  );
});

describe('a number among other values', () => {
  const big = '9007199254740993';
  const fine = '1.0000000000000000001';

  it.each([
    ['in an array', `{"a":[1,${big},[${fine}]]}`, { a: [1, big, [fine]] }],
    ['in an object', `{"a":{"b":{"c":${big}}},"d":1}`, { a: { b: { c: big } }, d: 1 }],
    ['next to white space', `{"a" :\n${fine}\t, "b": ${big} }`, { a: fine, b: big }],
    ['after a string of digits', `{"a":"${big}${big}","b":${big}}`, { a: big + big, b: big }],
    ['digits in strings only', `{"sub":"110169484474386276334","a":"x ${fine}:${fine},1e400"}`, undefined],
    ['digits in names', `{"${fine}":1,"x,${fine}":2}`, undefined],
    ['strings with quotation marks', String.raw`{"a":"\",${big}","b":"\\","c":"1e400"}`, undefined],
    ['a string that looks like a member', String.raw`{"a":"\":12345678901234567890,\"","b":0}`, undefined],
    ['zero next to exponents in strings', '{"a":0,"b":"3e-4"}', undefined],
    ['long exact numbers', '{"a":[0.10000000000000001,1234567890.1234567,-0.5e-10]}', undefined],
  ])('%s', (_, text, value: unknown) => expect(parse(text)).toEqual(value ?? JSON.parse(text)));

  it('two inexact numbers with one name → refused as a duplicate', () =>
    expect(parse(`{"a":${big},"a":${big}}`)).toBeUndefined());

  it('an object with an inexact number → frozen, and __proto__ stays a member', () => {
    const value = parse(`{"__proto__":{"a":${big}},"b":[${big}]}`);
    expect(Object.keys(value ?? {})).toEqual(['__proto__', 'b']);
    expect([value, value?.['b'], Reflect.get(Object(value), 'b')].every(Object.isFrozen)).toBe(true);
  });
});

/** A decimal number as a fraction. */
interface Fraction {
  readonly above: bigint;
  readonly below: bigint;
}

function readFraction(text: string): Fraction {
  const [, sign = '', whole = '', part = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text) ?? [];
  const shift = Number(exponent) - part.length;
  const digits = BigInt(`${whole}${part}`) * (sign === '' ? 1n : -1n);
  return shift >= 0
    ? { above: digits * 10n ** BigInt(shift), below: 1n }
    : { above: digits, below: 10n ** BigInt(-shift) };
}

const isEqual = (one: Fraction, other: Fraction): boolean => one.above * other.below === other.above * one.below;
const isBelow = (one: Fraction, other: Fraction): boolean => one.above * other.below < other.above * one.below;

/** The rule in exact arithmetic, by another path than the parser's. */
function isInexactByFractions(text: string): boolean {
  const value = readFraction(text.replace(/^-/, ''));
  // The double of 2^53 − 1/2, which lies in the middle, is 2^53.
  if (!isBelow(value, { above: 2n ** 54n - 1n, below: 2n })) return true;
  const [mantissa = ''] = text.toLowerCase().split('e');
  if ([...mantissa.matchAll(/\d/g)].join('').replace(/^0+/, '').length > 17) return true;
  const isTiny = isBelow(value, { above: 1n, below: 2n ** 1022n });
  return isTiny && !isEqual(value, readFraction(String(Math.abs(Number(text)))));
}

const digits = (min: number, max: number) =>
  fc.array(fc.constantFrom(...'00001234567899'), { minLength: min, maxLength: max }).map((all) => all.join(''));
const integer = fc.oneof(
  digits(1, 25).map((text) => text.replace(/^0+(?=\d)/, '')),
  fc.bigInt({ min: 2n ** 53n - 40n, max: 2n ** 53n + 40n }).map(String),
  fc.bigInt({ min: 0n, max: 2n ** 70n }).map(String),
);
const number = fc
  .tuple(
    fc.constantFrom('', '-'),
    integer,
    fc.oneof(
      { weight: 2, arbitrary: fc.constant('') },
      fc.oneof(digits(1, 20), digits(290, 340)).map((part) => `.${part}`),
    ),
    fc.oneof(
      { weight: 2, arbitrary: fc.constant('') },
      fc
        .tuple(
          fc.constantFrom('e', 'E', 'e+', 'e-', 'E-'),
          fc.oneof(fc.nat({ max: 30 }), fc.integer({ min: 290, max: 345 }), fc.nat({ max: 2000 })),
        )
        .map((parts) => parts.join('')),
    ),
  )
  .map((parts) => parts.join(''));

describe('any numbers', () => {
  it('inexact by the rule in exact arithmetic → a string, otherwise the number of JSON.parse', () => {
    fc.assert(
      fc.property(number, (text) => {
        const isString = isInexactByFractions(text);
        expect(isInexact(text)).toBe(isString);
        expect(read(text)).toBe(isString ? text : JSON.parse(text));
      }),
      { numRuns: 4000 },
    );
  });

  it('exact, at most 15 digits → JavaScript writes the same value', () => {
    fc.assert(
      fc.property(number, (text) => {
        const value = read(text);
        fc.pre(
          typeof value === 'number' && text.replace(/e.*/i, '').replaceAll(/\D/g, '').replace(/^0+/, '').length <= 15,
        );
        const written = String(Math.abs(value as number));
        expect(isEqual(readFraction(text.replace(/^-/, '')), readFraction(written))).toBe(true);
      }),
    );
  });

  it('a document of many → each as if alone, and the offsets of the inexact ones', () => {
    const strings = fc
      .oneof(
        number,
        fc.string(),
        number.map((text) => `",${text}:`),
      )
      .map((text) => JSON.stringify(text));
    const items = fc.array(fc.oneof(number, strings), { maxLength: 12 });
    fc.assert(
      fc.property(items, fc.constantFrom(',', ' , ', ',\n'), (values, comma) => {
        const alone = values.map((text) => (text.startsWith('"') ? JSON.parse(text) : read(text)));
        const list = `[${values.join(comma)}]`;
        expect(parse(`{"a":${list},"b":{"c":${list}}}`)).toEqual({ a: alone, b: { c: alone } });
        const found = findInexact(list).map((at) => /^[-\d.eE+]+/.exec(list.slice(at))?.[0]);
        expect(found).toEqual(values.filter((text) => !text.startsWith('"') && isInexactByFractions(text)));
      }),
    );
  });
});
