import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { normaliseUrl } from '../../src/core/dpop/htu.ts';
import { decodeBase64url, findInexact, parseJsonObject } from '../../src/core/jose/json.ts';
import { parseJws } from '../../src/core/jose/jws.ts';
import { quote } from '../../src/core/refusal/challenge.ts';
import { parseScope } from '../../src/core/token/grants.ts';
import { configureProperties } from './settings.ts';
import { anyJson, encodeJson, textChange } from './token-texts.ts';

configureProperties();

const bytes = fc.uint8Array({ minLength: 1, maxLength: 200 });
const object = fc.dictionary(fc.string(), anyJson);
/** Parses JSON that JSON.stringify wrote: its numbers are inexact only beyond ±(2^53 − 1). */
const parsed = (text: string): unknown =>
  JSON.parse(text, (_name, value) =>
    typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER ? String(value) : value,
  );
const encode = (value: Uint8Array): string => Buffer.from(value).toString('base64url');

describe('parse after print', () => {
  it('any header, payload and signature → the same again', () => {
    fc.assert(
      fc.property(object, bytes, bytes, (header, payload, signature) => {
        const signingInput = `${encodeJson(header)}.${encode(payload)}`;
        expect(parseJws(`${signingInput}.${encode(signature)}`)).toEqual({
          header: parsed(JSON.stringify(header)),
          headerText: encodeJson(header),
          payload: Buffer.from(payload),
          signingInput,
          signature: Buffer.from(signature),
        });
      }),
    );
  });

  it('any JWS that is parsed → printed, it is the text it was', () => {
    const text = fc
      .tuple(object, bytes, bytes, fc.array(textChange, { maxLength: 2 }))
      .map(([header, payload, signature, all]) =>
        all.reduce(
          (changed, change) => change(changed),
          `${encodeJson(header)}.${encode(payload)}.${encode(signature)}`,
        ),
      );
    fc.assert(
      fc.property(text, (sent) => {
        const jws = parseJws(sent);
        if (typeof jws === 'string') return;
        const [header = ''] = jws.signingInput.split('.');
        expect(`${header}.${encode(jws.payload)}.${encode(jws.signature)}`).toBe(sent);
        const json = Buffer.from(header, 'base64url').toString();
        if (findInexact(json).length === 0) expect(JSON.parse(json)).toEqual(jws.header);
      }),
    );
  });

  it('any JSON object → what JSON.parse makes of it, with inexact numbers as strings', () => {
    fc.assert(
      fc.property(object, fc.constantFrom('', ' ', '\t', '\r\n  '), (value, space) => {
        const text = JSON.stringify(value, undefined, space);
        expect(parseJsonObject(Buffer.from(text))).toEqual(parsed(text));
      }),
    );
  });
});

describe('one spelling', () => {
  it('any bytes → base64url that decodes to them', () => {
    fc.assert(
      fc.property(bytes, (value) => {
        expect(decodeBase64url(encode(value))).toEqual(Buffer.from(value));
      }),
    );
  });

  it('any other text that a lenient decoder takes for the same bytes → refused', () => {
    const spelling = fc.tuple(bytes, fc.array(textChange, { minLength: 1, maxLength: 3 }));
    fc.assert(
      fc.property(spelling, ([value, all]) => {
        const canonical = encode(value);
        const other = all.reduce((text, change) => change(text), canonical);
        fc.pre(other !== canonical && Buffer.from(other, 'base64url').equals(Buffer.from(value)));
        expect(decodeBase64url(other)).toBeUndefined();
      }),
      { maxSkipsPerRun: 10_000, numRuns: 100 },
    );
  });
});

describe('URLs', () => {
  const url = fc.oneof(
    fc.webUrl({ withQueryParameters: true, withFragments: true }),
    fc.webPath().map((path) => `http://a.example${path}`),
  );

  it('any web URL → normalised, it leads to the host and the path that WHATWG URL reads', () => {
    fc.assert(
      fc.property(url, (text) => {
        // The URL of Node 20 forgets dot segments behind a segment that starts with a dot.
        fc.pre(!/\/(?:\.|%2e)/i.test(text));
        const normal = normaliseUrl(text);
        expect(normal).toBeDefined();
        const [mine, theirs] = [new URL(normal ?? ''), new URL(text)];
        expect(mine.origin).toBe(theirs.origin);
        expect(decodeURI(mine.pathname)).toBe(decodeURI(theirs.pathname));
      }),
    );
  });
});

describe('challenge and scope', () => {
  it('any string quoted → one quoted-string; printable ASCII unchanged', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('"', '\\', ',', 'a', ' ', '\n', 'é', '\0', '\u{1f511}') }),
        (text) => {
          const quoted = quote(text);
          expect(quoted).toMatch(/^"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"$/);
          if (/^[\x20-\x7e]*$/.test(text)) expect(quoted.slice(1, -1).replace(/\\(.)/g, '$1')).toBe(text);
        },
      ),
    );
  });

  it('any names joined by spaces → those names, and no other', () => {
    const name = fc.string({ unit: fc.constantFrom('a', 'b', ':', '\t', 'A'), minLength: 1 });
    fc.assert(
      fc.property(fc.array(name), (names) => {
        expect([...parseScope(names.join(' '))]).toEqual([...new Set(names)]);
      }),
    );
  });
});
