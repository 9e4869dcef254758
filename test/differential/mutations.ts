import { createHmac, sign } from 'node:crypto';
import { takeRsaKeys } from '../support/rsa-keys.ts';
import type { Draft, Mint } from './draft.ts';

/** Picks one of a list, by the seed of the run. */
export type Pick = <T>(choices: readonly [T, ...T[]]) => T;

/** Changes a draft in one way. */
export type Mutation = (draft: Draft, pick: Pick, mint: Mint) => void;

const stranger = takeRsaKeys();
const absent = undefined;
const wrongTypes = [null, true, 0, -1, 'x', '', [], ['x'], {}, { x: 1 }] as const;
const skews = [-3600, -6, -5, -4, -1, 0, 1, 4, 5, 6, 3600] as const;

const header =
  (name: string, choices: readonly [unknown, ...unknown[]]): Mutation =>
  (draft, pick) => {
    draft.header[name] = pick(choices);
  };
const claim =
  (name: string, choices: readonly [unknown, ...unknown[]]): Mutation =>
  (draft, pick) => {
    draft.claims[name] = pick(choices);
  };
const time =
  (name: string): Mutation =>
  (draft, pick, { now }) => {
    draft.claims[name] = now + pick(skews) + pick([0, 0, 0.5]);
  };
/** JSON text that no value of JavaScript writes. */
const rawTime =
  (name: string): Mutation =>
  (draft, pick) => {
    const json = pick(['1e400', '-1e400', '1e10', '9007199254740993', '1.8e9', '-0', '1E+10', '"9e9"']);
    delete draft.claims[name];
    draft.claimsText = (text) => `{"${name}":${json},${text.slice(1)}`;
  };
const headerText =
  (change: (text: string, pick: Pick) => string | Uint8Array): Mutation =>
  (draft, pick) => {
    draft.headerText = (text) => change(text, pick);
  };
const claimsText =
  (change: (text: string, pick: Pick) => string | Uint8Array): Mutation =>
  (draft, pick) => {
    draft.claimsText = (text) => change(text, pick);
  };
const finish =
  (change: (token: string, pick: Pick) => string): Mutation =>
  (draft, pick) => {
    const before = draft.finish;
    draft.finish = (token) => change(before(token), pick);
  };
const changePart = (change: (part: string, pick: Pick) => string): Mutation =>
  finish((token, pick) => {
    const at = pick([0, 1, 2]);
    return token
      .split('.')
      .map((part, index) => (index === at ? change(part, pick) : part))
      .join('.');
  });
const append = (text: string, member: string): string => `${text.slice(0, -1)},${member}}`;
const badUtf8 = (text: string): Uint8Array =>
  Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.from([0x2c, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])]);
const nest = (depth: number): string => `"deep":${'['.repeat(depth)}${']'.repeat(depth)}`;
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Every way in which a token is changed. */
export const mutations: Readonly<Record<string, Mutation>> = {
  'header: typ': header('typ', [
    absent,
    'JWT',
    'jwt',
    'AT+JWT',
    'application/at+jwt',
    'application/jwt',
    'dpop+jwt',
    '',
    null,
    1,
  ]),
  'header: alg': header('alg', [absent, 'none', 'RS384', 'PS256', 'ES256', 'EdDSA', 'rs256', null, ['RS256']]),
  'header: kid': header('kid', [absent, 'unknown', '', null, 7, ['k'], 'k'.repeat(257)]),
  'header: crit': header('crit', [[], ['b64'], ['exp'], 'b64', null]),
  'header: b64': (draft, pick) => {
    draft.header['b64'] = pick([true, false]);
    if (pick([true, false])) draft.header['crit'] = ['b64'];
  },
  'header: zip': header('zip', ['DEF', null]),
  'header: key of its own': (draft) => {
    draft.header['jwk'] = stranger.publicKey.export({ format: 'jwk' });
    draft.sign = (input) => sign('sha256', input, stranger.privateKey);
  },
  'header: URL of a key': header('jku', ['https://127.0.0.1:1/jwks']),
  'header: unknown member': header('x', [1, 'x', null, {}]),
  'header: member twice': headerText((text, pick) =>
    append(text, pick(['"alg":"RS256"', '"typ":"at+jwt"', '"x":1,"x":2'])),
  ),
  'header: byte order mark': headerText((text) => `\ufeff${text}`),
  'header: bad UTF-8': headerText(badUtf8),
  'header: white space': headerText((text, pick) => pick([` ${text}`, `${text}\n`, text.replaceAll(',', ',\r\n\t')])),
  'header: deep': headerText((text, pick) => append(text, nest(pick([18, 19, 20, 100])))),
  'header: no object': headerText((text, pick) => pick(['[]', 'null', '""', '1', '{', `[${text}]`])),
  'claims: iss': (draft, pick, { issuer }) => {
    draft.claims['iss'] = pick([
      ...wrongTypes,
      absent,
      issuer.slice(0, -1),
      issuer.toUpperCase(),
      `${issuer}/`,
      [issuer],
    ]);
  },
  'claims: aud': (draft, pick, { audience }) => {
    draft.claims['aud'] = pick([
      ...wrongTypes,
      absent,
      [audience],
      ['x', audience],
      [audience, 1],
      [null, audience],
      [[audience]],
      `${audience} x`,
      audience.slice(0, -1),
    ]);
  },
  'claims: exp': time('exp'),
  'claims: exp of a wrong type': claim('exp', [absent, null, true, '1900000000', [], {}, -1]),
  'claims: exp in other words': rawTime('exp'),
  'claims: nbf': time('nbf'),
  'claims: nbf of a wrong type': claim('nbf', [null, true, '1', [], {}, -1]),
  'claims: nbf in other words': rawTime('nbf'),
  'claims: iat': time('iat'),
  'claims: iat of a wrong type': claim('iat', [absent, null, true, '1', [], {}, -1]),
  'claims: iat in other words': rawTime('iat'),
  'claims: sub': claim('sub', [absent, ...wrongTypes]),
  'claims: scope': claim('scope', [absent, ...wrongTypes]),
  'claims: cnf': claim('cnf', [
    ...wrongTypes,
    { jkt: 'A'.repeat(43) },
    { jkt: 1 },
    { 'x5t#S256': 'A'.repeat(43) },
    { jkt: 'A'.repeat(43), kid: 'x' },
    { jkt: 'A'.repeat(43), 'kc-jkt-type': 'DPoP' },
  ]),
  'claims: client_id, jti': (draft, pick) => {
    draft.claims[pick(['client_id', 'jti'])] = pick([absent, null, 7, ['x']]);
  },
  'claims: unknown member': claim('x', [1, null, [], 'é', '\ud800']),
  'claims: member twice': claimsText((text, pick) =>
    pick([
      append(text, '"exp":9000000000'),
      append(text, '"x":{"y":1,"y":1}'),
      `{"iss":"https://evil.example.test/",${text.slice(1)}`,
    ]),
  ),
  'claims: byte order mark': claimsText((text) => `\ufeff${text}`),
  'claims: bad UTF-8': claimsText(badUtf8),
  'claims: white space': claimsText((text, pick) => pick([`\n${text}`, `${text}  `, text.replaceAll(':', ' : ')])),
  'claims: deep': claimsText((text, pick) => append(text, nest(pick([18, 19, 20, 100])))),
  'claims: no object': claimsText((text, pick) => pick(['', '[]', 'null', '1', `[${text}]`, text.slice(0, -1)])),
  'claims: large': (draft, pick) => {
    draft.claims['filling'] = 'x'.repeat(pick([1000, 4000, 9000, 16_000]));
  },
  'encoding: padding': changePart((part, pick) => part + pick(['=', '=='])),
  'encoding: white space': changePart((part, pick) => part.slice(0, 4) + pick([' ', '\t']) + part.slice(4)),
  'encoding: base64': finish((token) => token.replaceAll('-', '+').replaceAll('_', '/')),
  'encoding: foreign character': changePart(
    (part, pick) => part.slice(0, 4) + pick(['!', '%41', '~', '"', '\xe9']) + part.slice(4),
  ),
  'encoding: stray bits': changePart(
    (part) => part.slice(0, -1) + (alphabet[alphabet.indexOf(part.slice(-1)) ^ 1] ?? ''),
  ),
  'encoding: a character changed': changePart((part, pick) => {
    const at = pick([0, 3, 10, 20]);
    return (
      part.slice(0, at) + (alphabet[alphabet.indexOf(part.charAt(at)) ^ pick([1, 2, 32])] ?? '') + part.slice(at + 1)
    );
  }),
  'parts: another number': finish((token, pick) =>
    pick([
      token.slice(0, token.lastIndexOf('.')),
      `${token}.`,
      `${token}.AA`,
      `${token}.AA.AA`,
      `.${token}`,
      token.replaceAll('.', ''),
      token.slice(0, token.lastIndexOf('.') + 1),
    ]),
  ),
  'signature: of a stranger': (draft) => {
    draft.sign = (input) => sign('sha256', input, stranger.privateKey);
  },
  'signature: by another digest': (draft, pick, { privateKey }) => {
    const digest = pick(['sha1', 'sha384', 'sha512']);
    draft.sign = (input) => sign(digest, input, privateKey);
  },
  'signature: HMAC by the public key': (draft, pick, { publicKey }) => {
    draft.header['alg'] = pick(['HS256', 'HS512']);
    const secret = publicKey.export({ type: 'spki', format: pick(['pem', 'der']) } as { type: 'spki'; format: 'pem' }); // the declarations have one overload a format
    draft.sign = (input) => createHmac('sha256', secret).update(input).digest();
  },
  'signature: of wrong length': (draft, pick) => {
    const before = draft.sign;
    const change = pick([
      (bytes: Buffer) => bytes.subarray(1),
      (bytes: Buffer) => Buffer.concat([Buffer.alloc(1), bytes]),
      (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(1)]),
    ]);
    draft.sign = (input) => change(before(input));
  },
};
