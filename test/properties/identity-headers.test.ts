import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Access } from '../../src/core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../src/core/token/claims.ts';
import { createIdentityHeaders, refuseHeaderName } from '../../src/gate/identity/identity-headers.ts';
import { anyText } from '../support/any-text.ts';
import { configureProperties } from './settings.ts';
import { anyJson } from './token-texts.ts';

configureProperties();

const identity = createIdentityHeaders({ 'X-Auth-Value': 'value' });

/** The header of a claim, as an upstream reads it: spaces at its ends do not arrive. */
function write(value: unknown): string {
  const access = { claims: { value }, scopes: new Set() } as unknown as Access<RegisteredClaims>;
  return (identity.write(access).values[0] ?? '').replace(/^[ \t]+|[ \t]+$/g, '');
}

const empty = write('');

/** Strings that look like the encoding of other strings, in addition to any string. */
const text = fc.oneof(
  anyText({ minLength: 1, maxLength: 40 }),
  fc
    .array(fc.constantFrom('"', '\\', 'u', '0', 'e', '9', 'é', ' ', '[', '{', '\ud800', '\n', '\u007f'), {
      minLength: 1,
      maxLength: 12,
    })
    .map((parts) => parts.join('')),
  anyText({ maxLength: 20 }).map((inner) => JSON.stringify(inner)),
);
const compound = fc.oneof(fc.array(anyJson, { maxLength: 4 }), fc.dictionary(fc.string(), anyJson, { maxKeys: 4 }));

describe('identity headers', () => {
  it('é and the ASCII string "\\u00e9" → different values', () => {
    expect(write('é')).toBe('"\\u00e9"');
    expect(write('"\\u00e9"')).toBe('"\\"\\\\u00e9\\""');
    expect(write('\\u00e9')).toBe('\\u00e9');
  });

  it('any two different strings → different values', () => {
    fc.assert(
      fc.property(text, text, (one, two) => {
        fc.pre(one !== two);
        expect(write(one)).not.toBe(write(two));
      }),
    );
  });

  it('a string and its own header value, as a claim → different values, unless it is sent unchanged', () => {
    fc.assert(
      fc.property(text, (value) => {
        const sent = write(value);
        fc.pre(sent !== value && sent !== empty);
        expect(write(sent)).not.toBe(sent);
      }),
    );
  });

  it('any string, array and object → never the same value', () => {
    const print = (value: unknown): string => JSON.stringify(value);
    fc.assert(
      fc.property(fc.oneof(text, compound), fc.oneof(text, compound), (one, two) => {
        fc.pre(print(one) !== print(two));
        fc.pre(write(one) !== empty && write(two) !== empty);
        expect(write(one)).not.toBe(write(two));
      }),
    );
  });

  it('any value → printable ASCII, and the claim can be read again', () => {
    fc.assert(
      fc.property(fc.oneof(text, compound), (value) => {
        const sent = write(value);
        fc.pre(sent !== empty);
        expect(sent).toMatch(/^[ -~]+$/);
        const read: unknown = /^["[{]/.test(sent) ? JSON.parse(sent) : sent;
        expect(JSON.stringify(read)).toBe(JSON.stringify(value));
      }),
    );
  });
});

/** Headers of framing, connection and authentication, and headers that the gate or its proxy writes. */
const ownMeanings =
  `connection keep-alive proxy-connection te trailer transfer-encoding upgrade content-length content-type
  content-encoding expect host via forwarded date server authorization dpop dpop-nonce www-authenticate proxy-authorization
  proxy-authenticate cookie set-cookie cache-control retry-after location origin client-cert http2-settings proxy
  proxy-authentication-info vary x-real-ip x-request-id x-gate-body traceparent x-forwarded-for x-forwarded-proto x-forwarded-host
  x-forwarded-prefix x-forwarded-method x-forwarded-uri x-original-url x-rewrite-url x-override-url x-http-method
  x-http-method-override x-method-override access-control-allow-origin`.split(/\s+/);

it('a header with another meaning → no identity header, in each spelling of CGI', () => {
  const spellings = ownMeanings.flatMap((name) => [name, name.toUpperCase(), name.replaceAll('-', '_')]);
  expect(spellings.filter((name) => refuseHeaderName(name) === undefined)).toEqual([]);
  expect(['x-auth-subject', 'x-access-control', 'x-user'].map(refuseHeaderName)).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});
