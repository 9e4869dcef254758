import fc from 'fast-check';
import { anyText } from '../support/any-text.ts';

/** Any JSON value, with the names that matter among its members, and the numbers at the edges. */
const leaf = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, '', 'RS256', 'at+jwt', 'read:messages', 0, -0, -1, 1e308, 2 ** 53, 0.5),
  anyText({ maxLength: 20 }),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    leaf,
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.dictionary(fc.string({ maxLength: 8 }), tie('tree'), { maxKeys: 4 }),
  ),
}));
export const anyJson = tree;

/** Changes of an object: some of its members, or others, with any value; `undefined` leaves a member out. */
export function changesOf(names: readonly string[]): fc.Arbitrary<Readonly<Record<string, unknown>>> {
  const name = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...names) },
    { weight: 1, arbitrary: fc.constantFrom('__proto__', 'constructor', 'toString', 'x', '') },
  );
  return fc
    .array(fc.tuple(name, fc.oneof(anyJson, fc.constant(undefined))), { maxLength: 4 })
    .map((entries) => Object.fromEntries(entries));
}

/** One change of a string: a Latin-1 character replaced, removed, inserted or doubled, or the end removed. */
export const textChange: fc.Arbitrary<(text: string) => string> = fc
  .record({
    kind: fc.constantFrom('replace', 'remove', 'insert', 'repeat', 'cut', 'swap'),
    at: fc.nat(),
    character: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
  })
  .map(({ kind, at, character }) => (text) => {
    const index = text.length === 0 ? 0 : at % text.length;
    const [head, here, tail] = [text.slice(0, index), text.charAt(index), text.slice(index + 1)];
    if (kind === 'replace') return head + character + tail;
    if (kind === 'remove') return head + tail;
    if (kind === 'insert') return head + character + here + tail;
    if (kind === 'repeat') return head + here + here + tail;
    return kind === 'cut' ? head : here + tail + head;
  });

/** base64url of a JSON value. */
export function encodeJson(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

/** One to six changes of a string, and the string that they make. */
export const changes = fc.array(textChange, { minLength: 1, maxLength: 6 });
export const apply = (text: string, all: readonly ((text: string) => string)[]): string =>
  all.reduce((changed, change) => change(changed), text);
