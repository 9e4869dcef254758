import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Reason } from '../../../src/core/failures.ts';
import { type Credentials, type DpopMode, readCredentials, readScheme } from '../../../src/core/http/credentials.ts';
import { Refused } from '../../../src/core/refused.ts';
import { anyText } from '../../support/any-text.ts';

const modes: readonly DpopMode[] = ['off', 'allowed', 'required'];

/** Real headers: repeated ones are joined as every runtime joins them. */
function headers(authorization: readonly string[], proof?: string): Headers {
  const list = new Headers(authorization.map((value): [string, string] => ['authorization', value]));
  if (proof !== undefined) list.set('dpop', proof);
  return list;
}

/** Headers that hold what a real list would refuse or trim. */
function rawHeaders(authorization: string | null, proof: string | null = null): { get(name: string): string | null } {
  return { get: (name) => (name === 'authorization' ? authorization : name === 'dpop' ? proof : null) };
}

function judge(list: { get(name: string): string | null }, mode: DpopMode): Credentials | Reason {
  const judged = readCredentials(list, mode);
  return judged instanceof Refused ? judged.reason : judged;
}

describe('schemes and modes', () => {
  it.each<[DpopMode, string, string | undefined, 'Bearer' | 'DPoP' | Reason]>([
    ['off', 'Bearer', undefined, 'Bearer'],
    ['off', 'Bearer', 'proof', 'bearer_with_dpop_proof'],
    ['off', 'DPoP', undefined, 'dpop_not_accepted'],
    ['off', 'DPoP', 'proof', 'dpop_not_accepted'],
    ['allowed', 'Bearer', undefined, 'Bearer'],
    ['allowed', 'Bearer', 'proof', 'bearer_with_dpop_proof'],
    ['allowed', 'DPoP', undefined, 'missing_dpop_proof'],
    ['allowed', 'DPoP', 'proof', 'DPoP'],
    ['required', 'Bearer', undefined, 'bearer_not_accepted'],
    ['required', 'Bearer', 'proof', 'bearer_with_dpop_proof'],
    ['required', 'DPoP', undefined, 'missing_dpop_proof'],
    ['required', 'DPoP', 'proof', 'DPoP'],
  ])('mode %s, scheme %s, proof %s → %s', (mode, scheme, proof, outcome) => {
    const credentials = judge(headers([`${scheme} a.b.c`], proof), mode);
    const accepted = outcome === 'Bearer' || outcome === 'DPoP';
    expect(credentials).toEqual(accepted ? { scheme: outcome, token: 'a.b.c', proof } : outcome);
  });

  it.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('%s → the Bearer scheme', (scheme) => {
    expect(judge(headers([`${scheme} a.b.c`]), 'allowed')).toMatchObject({ scheme: 'Bearer', token: 'a.b.c' });
    expect(readScheme(scheme)).toBe('Bearer');
  });

  it.each(['DPoP', 'dpop', 'DPOP', 'dPoP'])('%s → the DPoP scheme', (scheme) => {
    expect(judge(headers([`${scheme} a.b.c`], 'p'), 'allowed')).toEqual({ scheme: 'DPoP', token: 'a.b.c', proof: 'p' });
    expect(readScheme(scheme)).toBe('DPoP');
  });

  it.each(['', 'Basic', ' Bearer', 'Bearers', 'toString', '__proto__', 'ｂearer'])(
    'scheme "%s" → none that is known',
    (scheme) => expect(readScheme(scheme)).toBeUndefined(),
  );

  it('several DPoP headers → passed on as joined, for the proof check to refuse', () => {
    const list = headers(['DPoP a.b.c'], 'one');
    list.append('dpop', 'two');
    expect(judge(list, 'allowed')).toMatchObject({ proof: 'one, two' });
  });

  it('empty DPoP header next to Bearer → a proof was sent', () =>
    expect(judge(headers(['Bearer a.b.c'], ''), 'allowed')).toBe('bearer_with_dpop_proof'));
});

describe('value of the Authorization header', () => {
  it.each<[string, string | null, Reason]>([
    ['no header', null, 'missing_credentials'],
    ['an empty header', '', 'missing_credentials'],
    ['Bearer alone', 'Bearer', 'missing_credentials'],
    ['Bearer and a space', 'Bearer ', 'missing_credentials'],
    ['DPoP alone', 'DPoP', 'missing_credentials'],
    ['a space alone', ' ', 'unsupported_scheme'],
    ['a space before the scheme', ' Bearer a.b.c', 'unsupported_scheme'],
    ['a tab after the scheme', 'Bearer\ta.b.c', 'unsupported_scheme'],
    ['a token without a scheme', 'a.b.c', 'unsupported_scheme'],
    ['a colon after the scheme', 'Bearer: a.b.c', 'unsupported_scheme'],
    ['Basic', 'Basic dXNlcjpwYXNz', 'unsupported_scheme'],
    ['Digest', 'Digest username="a", realm="b", qop=auth, nc=00000001', 'unsupported_scheme'],
    ['Digest with commas in a value', 'Digest username="Doe, John Q, Jr", uri="/a,b c"', 'unsupported_scheme'],
    ['Digest with an escaped quote', 'Digest username="a\\", Bearer b", qop=auth', 'unsupported_scheme'],
    ['Digest with a quoted string before =', 'Digest realm="a", "b"=c', 'unsupported_scheme'],
    ['Digest with space around =', 'Digest realm = "a", qop = auth', 'unsupported_scheme'],
  ])('%s → %s', (_name, value, reason) => expect(judge(rawHeaders(value), 'allowed')).toBe(reason));

  it.each([
    ['Bearer  a.b.c', 'a.b.c'],
    ['Bearer     a.b.c', 'a.b.c'],
    ['Bearer \ta.b.c', '\ta.b.c'],
    ['Bearer a.b.c d', 'a.b.c d'],
    ['Bearer a.b.c ', 'a.b.c '],
    ['Bearer a=b,c=d', 'a=b,c=d'],
  ])('"%s" → the token is everything after the spaces, for the token check', (value, token) =>
    expect(judge(rawHeaders(value), 'allowed')).toMatchObject({ scheme: 'Bearer', token }),
  );
});

describe('repeated Authorization headers', () => {
  it.each([
    [['Bearer a', 'Bearer b']],
    [['Bearer a', 'DPoP b']],
    [['Bearer a', 'Basic dXNlcjpwYXM=']],
    [['Digest realm="x, y"', 'Bearer b']],
    [['Bearer "a', 'Bearer b']],
    [['Bearer a', 'Bearer']],
    [['Bearer a', '']],
    [['', 'Bearer a']],
    [['', '']],
  ])('%j → multiple_authorization_headers', (values) => {
    for (const mode of modes) expect(judge(headers(values), mode)).toBe('multiple_authorization_headers');
  });

  it.each([
    'Bearer a, Bearer b',
    'Bearer a ,\tBearer b',
    ', Bearer a',
    ', a=b',
    ' , a=b',
    'Bearer a,',
    ',',
    'Bearer a, b',
    'Bearer a, "\\, Bearer b',
    'Bearer "a\\", Bearer b\\',
  ])('one header %j → the same as two', (value) =>
    expect(judge(rawHeaders(value), 'allowed')).toBe('multiple_authorization_headers'),
  );

  it('the scheme is not checked first: two headers of a scheme that is off → multiple_authorization_headers', () =>
    expect(judge(headers(['DPoP a', 'DPoP b'], 'p'), 'off')).toBe('multiple_authorization_headers'));
});

describe('size', () => {
  it('token of 16384 characters → read', () => {
    const token = 'a'.repeat(16_384);
    expect(judge(headers([`Bearer ${token}`]), 'allowed')).toMatchObject({ token });
    expect(judge(headers([`Bearer   ${token}`]), 'allowed')).toMatchObject({ token });
  });

  it('token of 16385 characters → token_too_large', () => {
    expect(judge(headers([`Bearer ${'a'.repeat(16_385)}`]), 'allowed')).toBe('token_too_large');
    expect(judge(headers([`DPoP ${'a'.repeat(16_385)}`], 'p'), 'allowed')).toBe('token_too_large');
  });

  it('missing proof and a token too large → the proof is missed first', () =>
    expect(judge(headers([`DPoP ${'a'.repeat(16_385)}`]), 'allowed')).toBe('missing_dpop_proof'));
});

describe('any header at all', () => {
  const pieces = fc.constantFrom('Bearer', 'DPoP', 'Basic', ' ', ',', '"', '\\', '=', '\t', 'a.b.c', 'realm');
  const values = fc.oneof(
    anyText({ maxLength: 60 }),
    fc.array(pieces, { maxLength: 12 }).map((list) => list.join('')),
  );

  it('→ credentials within their bounds, or a refusal of the table', () => {
    fc.assert(
      fc.property(fc.option(values), fc.option(values), fc.constantFrom(...modes), (authorization, proof, mode) => {
        const result = judge(rawHeaders(authorization, proof), mode); // rethrows what is no AccessError
        if (typeof result === 'string') return;
        expect(result.token).not.toBe('');
        expect(result.token.startsWith(' ')).toBe(false);
        expect(authorization?.endsWith(result.token)).toBe(true);
        expect(result.scheme === 'DPoP').toBe(result.proof !== undefined);
        expect(result.scheme).not.toBe(mode === 'off' ? 'DPoP' : mode === 'required' ? 'Bearer' : undefined);
      }),
      { numRuns: 2000 },
    );
  });

  it('with the token of RFC 6750 §2.1 → read unchanged', () => {
    const characters = [...'ABCxyz0189-._~+/='];
    const token = fc.string({ unit: fc.constantFrom(...characters), minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(token, (text) => {
        expect(judge(headers([`Bearer ${text}`]), 'allowed')).toEqual({
          scheme: 'Bearer',
          token: text,
          proof: undefined,
        });
      }),
    );
  });

  it.each([
    ['quotation marks that are never closed', '"\\'.repeat(8000)],
    ['escaped quotation marks', '\\"'.repeat(8000)],
    ['commas', ','.repeat(16_000)],
    ['spaces', `a${' '.repeat(16_000)}=`],
  ])('16 KiB of %s → refused as repeated', (_name, text) =>
    expect(judge(rawHeaders(`Bearer ${text},`), 'allowed')).toBe('multiple_authorization_headers'),
  );
});
