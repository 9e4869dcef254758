import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { type Input, now, token, type World } from './input.ts';

const secret = 'a secret of the issuer, as long as HS256 wants it';
const hs256 = (key: string) => (world: World) => {
  const [header, claims] = [
    { alg: 'HS256' },
    { iss: world.issuer.issuer, aud: world.issuer.audience, sub: 'alice' },
  ].map((part, index) =>
    Buffer.from(JSON.stringify(index === 0 ? part : { ...part, iat: now(), exp: now() + 60 })).toString('base64url'),
  );
  const text = `${header}.${claims}`;
  return { headers: ['Authorization', `Bearer ${text}.${createHmac('sha256', key).update(text).digest('base64url')}`] };
};
const withSecret = () => ({ options: { publicKey: undefined, secret, tokenSigningAlg: 'HS256' } });
const unsigned = (alg: string) => (world: World) => {
  const [, claims = ''] = world.issuer.token().split('.');
  const header = Buffer.from(JSON.stringify({ alg, typ: 'JWT' })).toString('base64url');
  return { headers: ['Authorization', `Bearer ${header}.${claims}.c2ln`] };
};
const strict = { before: () => ({ options: { strict: true } }), after: { options: { profile: 'rfc9068' } } } as const;
const validators = (foo: unknown) => () => ({ options: { validators: { foo } } });
const fooIs = (value: string) => ({ policy: { claims: z.looseObject({ foo: z.literal(value) }) } });
const forbidden =
  'the token is good, and does not allow this call: 403 (RFC 6750 §3.1), so clients do not sign in again';
const tolerance = (clockTolerance: number) => ({
  before: () => ({ options: { clockTolerance } }),
  after: { options: { clockTolerance } },
});
const noMaxAge = 'how old a token may be is for the issuer to say, in `exp`. `maxAge` of a policy is about the sign-in';

/** Content of the token. */
export const tokenInputs: readonly Input[] = [
  { name: 'a good token', call: token(), was: '200' },
  {
    name: 'text that is no JWT',
    call: () => ({ headers: ['Authorization', 'Bearer invalid.jwt'] }),
    was: '401 invalid_token',
  },
  { name: '`alg: none`', call: unsigned('none'), was: '401 invalid_token' },
  { name: '`alg: NONE`', call: unsigned('NONE'), was: '401 invalid_token' },
  { name: '`alg` absent', call: token({}, { alg: undefined }), was: '401 invalid_token' },
  {
    name: 'another `alg` than `tokenSigningAlg`',
    before: () => ({ options: { tokenSigningAlg: 'ES256' } }),
    after: { options: { algorithms: ['ES256'] } },
    call: token(),
    was: '401 invalid_token',
  },
  {
    name: 'HS256 with `secret`',
    before: withSecret,
    call: hs256(secret),
    was: '200',
    is: ['401 invalid_token', 'whoever can check such a token can make one: HS256 cannot be configured'],
  },
  { name: 'HS256 with another secret', before: withSecret, call: hs256('another'), was: '401 invalid_token' },
  { name: 'HS256 without `secret`', call: hs256(secret), was: '401 invalid_token' },
  {
    name: 'a signature of another key',
    call: ({ issuer }) => ({ headers: ['Authorization', `Bearer ${issuer.flawed('invalid_signature')}`] }),
    was: '401 invalid_token',
  },
  { name: 'another issuer', call: token({ iss: 'foo' }), was: '401 invalid_token' },
  { name: 'another audience', call: token({ aud: 'foo' }), was: '401 invalid_token' },
  { name: 'a list of other audiences', call: token({ aud: ['bar'] }), was: '401 invalid_token' },
  { name: '`aud` as a number', call: token({ aud: 1 }), was: '401 invalid_token' },
  {
    name: 'one of several audiences',
    before: () => ({ options: { audience: ['foo', 'bar'] } }),
    after: { options: { audience: ['foo', 'bar'] } },
    call: token({ aud: ['bar', 'baz'] }),
    was: '200',
  },
  { name: 'expired', call: token({ exp: now() - 50 }), was: '401 invalid_token' },
  { name: '`exp` as text', call: token({ exp: 'foo' }), was: '401 invalid_token' },
  { name: '`exp` absent', call: token({ exp: undefined }), was: '401 invalid_token' },
  { name: 'expired, within `clockTolerance`', ...tolerance(60), call: token({ exp: now() - 30 }), was: '200' },
  { name: '`nbf` in the future', call: token({ nbf: now() + 100 }), was: '401 invalid_token' },
  { name: '`nbf` within `clockTolerance`', ...tolerance(60), call: token({ nbf: now() + 30 }), was: '200' },
  { name: '`iat` as text', call: token({ iat: 'foo' }), was: '401 invalid_token' },
  {
    name: '`iat` in the future',
    call: token({ iat: now() + 200 }),
    was: '200',
    is: ['401 invalid_token', 'the token says that it was not issued yet'],
  },
  {
    name: '`iat` in the future, with `maxTokenAge`',
    before: () => ({ options: { maxTokenAge: 10 } }),
    call: token({ iat: now() + 200 }),
    was: '401 invalid_token',
  },
  {
    name: 'older than `maxTokenAge`',
    before: () => ({ options: { maxTokenAge: 10 } }),
    call: token({ iat: now() - 100 }),
    was: '401 invalid_token',
    is: ['200', noMaxAge],
  },
  {
    name: '`iat` absent',
    call: token({ iat: undefined }),
    was: '200',
    is: ['401 invalid_token', 'RFC 9068 §2.2 demands it'],
  },
  {
    name: '`sub` absent',
    call: token({ sub: undefined }),
    was: '200',
    is: [
      '401 invalid_token',
      "a token that belongs to nobody is a mistake of the provider; `subject: 'optional'` lets it in",
    ],
  },
  {
    name: '`kid` absent',
    call: token({}, { kid: undefined }),
    was: '200',
    is: ['401 invalid_token', 'a key is chosen by its name, never by trying'],
  },
  { name: '`kid` of no key', call: token({}, { kid: 'another' }), was: '401 invalid_token' },
  {
    name: '`typ` that no access token has',
    call: token({}, { typ: 'foo' }),
    was: '200',
    is: ['401 invalid_token', 'a JWT of another kind, such as a logout token, is no access token'],
  },
  {
    name: '`crit` with an extension that nobody knows',
    call: token({}, { crit: ['foo'], foo: 1 }),
    was: '401 invalid_token',
  },
  {
    name: '`scope` as a list',
    call: token({ scope: ['foo'] }),
    was: '200',
    is: ['401 invalid_token', "RFC 9068 §2.2.3 wants a text; `scopeClaim: 'scope'` takes a list"],
  },
  {
    name: 'an ID token: `at_hash`',
    call: token({ at_hash: 'x' }),
    was: '200',
    is: ['401 invalid_token', 'an ID token is for the client, not for the API'],
  },
  { name: '`strict`: `typ` of `at+jwt`', ...strict, call: token({}, { typ: 'at+jwt' }), was: '200' },
  { name: '`strict`: `typ` of `AT+JWT`', ...strict, call: token({}, { typ: 'AT+JWT' }), was: '200' },
  {
    name: '`strict`: `typ` of `application/at+jwt`',
    ...strict,
    call: token({}, { typ: 'application/at+jwt' }),
    was: '200',
  },
  { name: '`strict`: `typ` of `JWT`', ...strict, call: token({}, { typ: 'JWT' }), was: '401 invalid_token' },
  { name: '`strict`: `typ` as a number', ...strict, call: token({}, { typ: 1 }), was: '401 invalid_token' },
  { name: '`strict`: no `sub`', ...strict, call: token({ sub: undefined }), was: '401 invalid_token' },
  { name: '`strict`: no `client_id`', ...strict, call: token({ client_id: undefined }), was: '401 invalid_token' },
  { name: '`strict`: no `jti`', ...strict, call: token({ jti: undefined }), was: '401 invalid_token' },
  { name: '`strict`: no `iat`', ...strict, call: token({ iat: undefined }), was: '401 invalid_token' },
  { name: '`strict`: `sub` as a number', ...strict, call: token({ sub: 1 }), was: '401 invalid_token' },
  { name: '`strict`: `client_id` as a list', ...strict, call: token({ client_id: ['bar'] }), was: '401 invalid_token' },
  { name: '`strict`: `jti` as a boolean', ...strict, call: token({ jti: true }), was: '401 invalid_token' },
  {
    name: '`validators`: another value',
    before: validators('baz'),
    after: fooIs('baz'),
    call: token({ foo: 'bar' }),
    was: '401 invalid_token',
    is: ['403 insufficient_scope', forbidden],
  },
  {
    name: '`validators`: the value',
    before: validators('bar'),
    after: fooIs('bar'),
    call: token({ foo: 'bar' }),
    was: '200',
  },
  {
    name: '`validators`: a function that says no',
    before: validators(() => false),
    after: { policy: { claims: z.looseObject({}).refine(() => false) } },
    call: token({ foo: 'bar' }),
    was: '401 invalid_token',
    is: ['403 insufficient_scope', forbidden],
  },
  {
    name: '`validators`: a promise that says yes',
    before: validators(() => Promise.resolve(true)),
    after: { policy: { claims: z.looseObject({}).refine(() => Promise.resolve(true)) } },
    call: token({ foo: 'bar' }),
    was: '200',
  },
];
