import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { forbidden } from './check-inputs.ts';
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
const strict = { before: () => ({ options: { strict: true } }), after: { options: { profile: 'rfc9068' } } } as const;
const validators = (foo: unknown) => () => ({ options: { validators: { foo } } });
const fooIs = (value: string) => ({ policy: { claims: z.looseObject({ foo: z.literal(value) }) } });
/** A token that was admitted, and why it is refused. */
const refused = (name: string, call: Input['call'], why: string): Input => ({
  name,
  call,
  was: '200',
  is: ['401 invalid_token', why],
});
const tolerance = (clockTolerance: number) => ({
  before: () => ({ options: { clockTolerance } }),
  after: { options: { clockTolerance } },
});
const noMaxAge = 'how old a token may be is for the issuer to say, in `exp`. `maxAge` of a policy is about the sign-in';

/** Content of the token. */
export const tokenInputs: readonly Input[] = [
  { name: 'a good token', call: token(), was: '200' },
  {
    name: 'HS256 with `secret`',
    before: withSecret,
    call: hs256(secret),
    was: '200',
    is: ['401 invalid_token', 'whoever can check such a token can make one: HS256 cannot be configured'],
  },
  {
    name: 'one of several audiences',
    before: () => ({ options: { audience: ['foo', 'bar'] } }),
    after: { options: { audience: ['foo', 'bar'] } },
    call: token({ aud: ['bar', 'baz'] }),
    was: '200',
  },
  { name: 'expired, within `clockTolerance`', ...tolerance(60), call: token({ exp: now() - 30 }), was: '200' },
  { name: '`nbf` within `clockTolerance`', ...tolerance(60), call: token({ nbf: now() + 30 }), was: '200' },
  refused('`iat` in the future', token({ iat: now() + 200 }), 'the token says that it was not issued yet'),
  {
    name: 'older than `maxTokenAge`',
    before: () => ({ options: { maxTokenAge: 10 } }),
    call: token({ iat: now() - 100 }),
    was: '401 invalid_token',
    is: ['200', noMaxAge],
  },
  refused('`iat` absent', token({ iat: undefined }), 'RFC 9068 §2.2 demands it'),
  refused(
    '`sub` absent',
    token({ sub: undefined }),
    "a token that belongs to nobody is a mistake of the provider; `subject: 'optional'` lets it in",
  ),
  refused('`kid` absent', token({}, { kid: undefined }), 'a key is chosen by its name, never by trying'),
  refused(
    '`typ` that no access token has',
    token({}, { typ: 'foo' }),
    'a JWT of another kind, such as a logout token, is no access token',
  ),
  refused(
    '`scope` as a list',
    token({ scope: ['foo'] }),
    "RFC 9068 §2.2.3 wants a text; `scopeClaim: 'scope'` takes a list",
  ),
  refused('an ID token: `at_hash`', token({ at_hash: 'x' }), 'an ID token is for the client, not for the API'),
  { name: '`strict`: `typ` of `at+jwt`', ...strict, call: token({}, { typ: 'at+jwt' }), was: '200' },
  { name: '`strict`: `typ` of `AT+JWT`', ...strict, call: token({}, { typ: 'AT+JWT' }), was: '200' },
  {
    name: '`strict`: `typ` of `application/at+jwt`',
    ...strict,
    call: token({}, { typ: 'application/at+jwt' }),
    was: '200',
  },
  {
    name: '`validators`: another value',
    before: validators('baz'),
    after: fooIs('baz'),
    call: token({ foo: 'bar' }),
    ...forbidden,
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
    ...forbidden,
  },
  {
    name: '`validators`: a promise that says yes',
    before: validators(() => Promise.resolve(true)),
    after: { policy: { claims: z.looseObject({}).refine(() => Promise.resolve(true)) } },
    call: token({ foo: 'bar' }),
    was: '200',
  },
];
