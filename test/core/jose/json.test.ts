import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isJsonObject, type JsonObject, parseJsonObject } from '../../../src/core/jose/json.ts';

const parse = (text: string) => parseJsonObject(Buffer.from(text));
const nestArrays = (depth: number) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
const nestObjects = (depth: number) => `${'{"a":'.repeat(depth - 1)}{}${'}'.repeat(depth - 1)}`;

describe('objects are parsed', () => {
  it.each([
    ['empty', '{}'],
    ['white space', ' \t\r\n{ "a" : [ ] , "b" : { } }\n'],
    ['every type', '{"a":"x","b":1,"c":true,"d":false,"e":null,"f":[],"g":{}}'],
    ['the same name in two objects', '{"a":{"b":1},"c":{"b":1},"d":[{"b":1},{"b":1}]}'],
    ['the same name at two levels', '{"a":{"a":{"a":1}}}'],
    ['names that differ in case', '{"aud":1,"AUD":2}'],
    ['names that differ in normalisation alone', '{"\u00e9":1,"e\u0301":2}'],
    ['the empty name', '{"":1}'],
    ['names of Object.prototype', '{"constructor":1,"toString":2,"hasOwnProperty":3}'],
    ['__proto__ once', '{"__proto__":{"admin":true}}'],
    ['names that look like indices', '{"1":1,"0":0,"01":2}'],
    ['colons in strings', '{"a":"b:c","d:e":"::"}'],
    ['brackets in strings', `{"a":"${'[{'.repeat(30)}","]}":1}`],
    ['escaped quotation marks', String.raw`{"a\"b":"\":\"","c":"\\","d":"\\\":"}`],
    ['escapes', String.raw`{"\u0061ud":"\ud83d\ude00\n\/"}`],
    ['a lone surrogate, escaped', String.raw`{"a":"\ud800"}`],
    ['UTF-8 of two, three and four bytes', '{"é€😀":"é€😀"}'],
    ['members inside arrays', '{"a":[[{"b":1}],1,"x",null,{"c":[{"d":2}]}]}'],
    ['numbers', '{"a":1e3,"b":-1.50,"c":1e-300,"d":-0,"e":9007199254740991}'],
    ['20 levels of objects', nestObjects(20)],
    ['20 levels, arrays inside', nestArrays(20)],
    ['null at the bottom of 20 levels', nestArrays(20).replace('[]', '[null]')],
    ['many brackets side by side', `{"a":[${'[],{},'.repeat(100)}1]}`],
  ])('%s', (_, text) => expect(parse(text)).toEqual(JSON.parse(text)));

  it('__proto__ is a member like any other and no prototype', () => {
    const value = parse('{"__proto__":{"admin":true}}');
    expect(Object.keys(value ?? {})).toEqual(['__proto__']);
    expect(value?.['admin']).toBeUndefined();
  });
});

it.each([
  ['the object', (value: JsonObject) => value],
  ['an object in it', (value: JsonObject) => value['a']],
  ['an array in it', (value: JsonObject) => value['b']],
  ['an object in an array', (value: JsonObject) => Object(value['b'])[0]],
])('parsed values are read-only: %s', (_, part) => {
  const value = parse('{"a":{},"b":[{}]}');
  if (value === undefined) throw new Error('It was not parsed.');
  expect(part(value)).toBeTypeOf('object');
  expect(Object.isFrozen(part(value))).toBe(true);
});

it.each([
  ['plain', '{"aud":"a","aud":"b"}'],
  ['of equal values', '{"aud":"a","aud":"a"}'],
  ['one escaped', String.raw`{"aud":"a","\u0061ud":"b"}`],
  ['escaped differently', String.raw`{"\u00e9":1,"\u00E9":2}`],
  ['one escaped, the other in UTF-8', String.raw`{"é":1,"\u00e9":2}`],
  ['three times', '{"a":1,"a":2,"a":3}'],
  ['not neighbours', '{"a":1,"b":2,"a":3}'],
  ['nested', '{"cnf":{"jkt":"a","jkt":"b"}}'],
  ['in an array', '{"a":[1,{"b":1,"b":2}]}'],
  ['in an array in an array', '{"a":[[[{"b":1,"b":2}]]]}'],
  ['a subtree that is lost', '{"a":{"b":{"c":1}},"a":1}'],
  ['a subtree that hides the loss', '{"a":1,"a":{"b":1,"c":2}}'],
  ['in a subtree that is lost', '{"a":{"b":1,"b":2},"a":{}}'],
  ['__proto__', '{"__proto__":1,"__proto__":2}'],
  ['__proto__, one escaped', String.raw`{"__proto__":{},"\u005f_proto__":{}}`],
  ['the empty name', '{"":1,"":2}'],
  ['indices', '{"1":1,"1":2}'],
  ['undone by null', '{"a":1,"a":null}'],
  ['of different types', '{"a":"x","a":1}'],
  ['a space before one colon', '{"a" :1,"a":2}'],
  ['a line feed before one colon', '{"a":1,"a"\n:2}'],
  ['white space around every colon', '{"a" : 1, "a" : 2}'],
  ['colons in values beside it', '{"a":"::","a":":"}'],
])('duplicate members are refused: %s', (_, text) => {
  expect(JSON.parse(text)).toBeTypeOf('object'); // JSON.parse would take it
  expect(parse(text)).toBeUndefined();
});

it.each([
  ['nothing', ''],
  ['white space', ' \n'],
  ['an array', '[]'],
  ['an array of an object', '[{"a":1}]'],
  ['a string', '"{}"'],
  ['a number', '1'],
  ['null', 'null'],
  ['true', 'true'],
  ['trailing garbage', '{}x'],
  ['two objects', '{}{}'],
  ['trailing comma', '{"a":1,}'],
  ['trailing NUL', '{}\0'],
  ['cut off', '{"a":1'],
  ['cut off in a string', '{"a":"b'],
  ['cut off after a backslash', '{"a":"b\\'],
  ['closed too often', '{"a":1}}'],
  ['closed by the wrong bracket', '{"a":[1}'],
  ['single quotation marks', "{'a':1}"],
  ['no quotation marks', '{a:1}'],
  ['a comment', '{"a":1/**/}'],
  ['NaN', '{"a":NaN}'],
  ['a leading zero', '{"a":01}'],
  ['hexadecimal', '{"a":0x1}'],
  ['a control character in a string', '{"a":"\n"}'],
  ['a bad escape', String.raw`{"a":"\x41"}`],
  ['a no-break space between tokens', '{"a":\u00a01}'],
  ['a byte order mark', '\ufeff{}'],
  ['21 levels of objects', nestObjects(21)],
  ['21 levels, arrays inside', nestArrays(21)],
  ['8 000 levels', nestArrays(8000)],
  ['130 000 levels, what an answer of 256 KiB can hold', nestArrays(130_000)],
  ['8 000 brackets without an end', `{"a":${'['.repeat(8000)}`],
])('a value that is not a JSON object is refused: %s', (_, text) => expect(parse(text)).toBeUndefined());

describe('bad UTF-8 is refused', () => {
  it.each([
    ['stray continuation byte', '80'],
    ['cut two-byte sequence', 'c3'],
    ['cut three-byte sequence', 'e282'],
    ['cut four-byte sequence', 'f09f98'],
    ['overlong slash', 'c0af'],
    ['overlong quotation mark', 'c0a2'],
    ['overlong NUL', 'c080'],
    ['overlong three bytes', 'e080af'],
    ['overlong four bytes', 'f08080af'],
    ['high surrogate', 'eda080'],
    ['low surrogate', 'edb080'],
    ['surrogate pair (CESU-8)', 'eda0bdedb880'],
    ['beyond U+10FFFF', 'f4908080'],
    ['five bytes', 'f888808080'],
    ['0xff', 'ff'],
    ['Latin-1', 'e9'],
  ])('%s', (_, hex) => {
    const bytes = Buffer.concat([Buffer.from('{"a":"'), Buffer.from(hex, 'hex'), Buffer.from('"}')]);
    expect(JSON.parse(bytes.toString())).toBeTypeOf('object'); // a lenient decoder would take it
    expect(parseJsonObject(bytes)).toBeUndefined();
  });

  it.each(['utf16le', 'latin1'] as const)('%s is not guessed', (encoding) =>
    expect(parseJsonObject(Buffer.from('{"a":"é"}', encoding))).toBeUndefined(),
  );
});

describe('properties', () => {
  const objects = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 6 }), { maxKeys: 6 });

  it('any object with a member repeated is refused, at any depth', () => {
    const wraps = fc.array(fc.constantFrom('{"x":?}', '{"x":[?],"y":0}', '{"y":[[1,?]]}'), { maxLength: 5 });
    fc.assert(
      fc.property(objects, fc.string(), wraps, (value, name, around) => {
        const member = `${JSON.stringify(name)}:0`;
        const text = JSON.stringify({ ...value, [name]: value });
        const wrapped = around.reduce((inner, wrap) => wrap.replace('?', () => inner), `{${member},${text.slice(1)}`);
        expect(parse(wrapped)).toBeUndefined();
      }),
    );
  });

  it('any bytes → a result, never an error', () => {
    const noise = fc.oneof(fc.uint8Array(), fc.string({ unit: fc.constantFrom(...'{}[]":,\\a1 ') }).map(Buffer.from));
    fc.assert(
      fc.property(noise, (bytes) => {
        const value = parseJsonObject(bytes);
        expect(value === undefined || isJsonObject(value)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});

it.each([
  [{}, true],
  [{ a: 1 }, true],
  [[], false],
  [null, false],
  [undefined, false],
  ['{}', false],
  [1, false],
  [true, false],
])('isJsonObject: %j → %s', (value, expected) => expect(isJsonObject(value)).toBe(expected));
