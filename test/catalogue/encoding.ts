import { listCases, type Make } from './row.ts';
import { encodePart } from './world.ts';

type Part = 0 | 1 | 2;

const partNames = ['header', 'claims', 'signature'] as const;
const partIndexes: readonly Part[] = [0, 1, 2];

const finish =
  (change: (token: string) => string): Make =>
  ({ mint }) =>
    mint({ finish: change });
const changePart = (index: Part, change: (part: string) => string): Make =>
  finish((token) =>
    token
      .split('.')
      .map((part, at) => (at === index ? change(part) : part))
      .join('.'),
  );
const everyPart = (name: string, change: (part: string) => string) =>
  partIndexes.map((index) => [`${name}: ${partNames[index]}`, changePart(index, change)] as const);
const insert =
  (text: string) =>
  (part: string): string =>
    part.slice(0, 8) + text + part.slice(8);

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** The last character with another of the bits that nothing stands for; header and claims are filled up so that there are some. */
const strayBits = (index: Part): Make => {
  const pad = (text: string): string => text.slice(0, -1) + ' '.repeat((4 - (text.length % 3)) % 3) + text.slice(-1);
  return ({ mint, keys, provider, now }) => {
    const { issuer: iss, audience: aud } = provider;
    const claims = JSON.stringify({ iss, aud, sub: 'user|1', iat: now(), exp: now() + 3600 });
    return mint({
      headerBytes: pad(JSON.stringify({ alg: 'RS256', kid: keys.rsa.kid })),
      claimsBytes: pad(claims),
      finish: (token) => {
        const parts = token.split('.');
        const part = parts[index] ?? '';
        const last = alphabet[alphabet.indexOf(part.slice(-1)) + 1] ?? '';
        return parts.with(index, part.slice(0, -1) + last).join('.');
      },
    });
  };
};

/** The JSON serialization (RFC 7515 §7.2) of a valid token. */
const json =
  (form: 'flattened' | 'general'): Make =>
  ({ mint }) => {
    const [head = '', payload = '', signature = ''] = mint().split('.');
    const signed = { protected: head, signature };
    return JSON.stringify(form === 'flattened' ? { payload, ...signed } : { payload, signatures: [signed] });
  };

/** A valid token padded to N characters. */
const ofLength =
  (length: number): Make =>
  ({ mint }) => {
    let filling = '';
    let token = mint();
    while (token.length < length) {
      filling += 'x'.repeat(Math.max(1, Math.floor((length - token.length) * 0.75)));
      token = mint({ claims: { filling } });
    }
    return token;
  };

/** Attacks by the encoding of the token. */
export const encoding = listCases([
  {
    attack: 'second spelling of one token',
    source: 'RFC 7515 §2, RFC 4648 §3.5',
    reason: 'malformed_encoding',
    cases: [
      ...everyPart('padding', (part) => `${part}=`),
      ...everyPart('padding, twice', (part) => `${part}==`),
      ...partIndexes.map((index) => [`stray bits: ${partNames[index]}`, strayBits(index)] as const),
      ...everyPart('space inside', insert(' ')),
      ...everyPart('tab inside', insert('\t')),
      ...everyPart('plus', insert('+')),
      ...everyPart('slash', insert('/')),
      ...everyPart('percent escape', insert('%41')),
      ...everyPart('full stop of another script', insert('\xb7')),
      ...everyPart('byte over 127', insert('\xe9')),
      ...everyPart('tilde', insert('~')),
      ...everyPart('quotation mark', insert('"')),
      ...everyPart('backslash', insert('\\')),
      ...everyPart('one character too many', (part) => part + 'A'.repeat(5 - (part.length % 4))),
      ['quoted', finish((token) => `"${token}"`)],
      ['in angle brackets', finish((token) => `<${token}>`)],
      ['as a parameter', finish((token) => `token=${token}`)],
      ['base64 in place of base64url', finish((token) => `${token.replaceAll('-', '+').replaceAll('_', '/')}+/`)],
    ],
  },
  {
    attack: 'another number of parts',
    source: 'RFC 7515 §7.1',
    reason: 'malformed_token',
    cases: [
      ['one part', finish((token) => token.slice(0, token.indexOf('.'))), 'opaque_token'],
      ['dots as percent escapes', finish((token) => token.replaceAll('.', '%2E')), 'opaque_token'],
      ['two parts', finish((token) => token.slice(0, token.lastIndexOf('.')))],
      ['four parts', finish((token) => `${token}.e30`)],
      ['four parts, the last empty', finish((token) => `${token}.`)],
      ['four parts, the first empty', finish((token) => `.${token}`)],
      ['six parts', finish((token) => `${token}.e30.e30.e30`)],
      ['two tokens', finish((token) => `${token}.${token}`)],
      ['only dots', () => '..'],
      ['8000 dots', () => '.'.repeat(8000)],
      ['header empty', finish((token) => token.slice(token.indexOf('.')))],
      ['signature empty', finish((token) => token.slice(0, token.lastIndexOf('.') + 1)), {}],
      ['payload detached', finish((token) => token.replace(/\.[^.]+\./, '..')), 'malformed_claims'],
    ],
  },
  {
    attack: 'encrypted token: work before any check',
    source: 'RFC 7516, CVE-2022-36083, CVE-2024-28176',
    reason: 'encrypted_token',
    cases: [
      ['five parts', () => 'eyJhbGciOiJSU0EtT0FFUCJ9.AAAA.AAAA.AAAA.AAAA'],
      [
        'PBES2 with 2^31 rounds',
        () => `${encodePart('{"alg":"PBES2-HS256+A128KW","enc":"A128GCM","p2c":2147483648,"p2s":"AA"}')}.AA.AA.AA.AA`,
      ],
      ['zip', () => `${encodePart('{"alg":"dir","enc":"A128GCM","zip":"DEF"}')}..AA.AA.AA`],
      ['five empty parts', () => '....'],
    ],
  },
  {
    attack: 'another serialisation',
    source: 'RFC 9068 §2, RFC 7515 §7.2, RFC 7519 §5.2, CVE-2022-39227',
    reason: 'opaque_token',
    cases: [
      ['flattened JSON', json('flattened')],
      ['general JSON', json('general')],
      ['opaque', () => 'v2local-e8c1'],
      ['token inside a token', ({ mint }) => mint({ header: { cty: 'JWT' }, claimsBytes: mint() }), 'malformed_claims'],
      ['compact token inside JSON', ({ mint }) => `{"${mint()}":1}`, 'malformed_encoding'],
    ],
  },
  {
    attack: 'size',
    source: 'RFC 9110 §5.4',
    reason: 'token_too_large',
    cases: [
      ['good token over 16 KiB', ofLength(16_385)],
      ['16385 characters', () => `a.b.${'x'.repeat(16_381)}`],
      ['20 KiB of dots', () => '.'.repeat(20_000)],
    ],
  },
]);
