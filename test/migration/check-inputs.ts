import { z } from 'zod';
import type { Policy } from '../../src/core/policy/policy.ts';
import { type Input, token } from './input.ts';
import type { Original } from './original.ts';

/** The results of a valid token that does not allow the call. */
export const forbidden = {
  was: '401 invalid_token',
  is: [
    '403 insufficient_scope',
    'the token is good, and does not allow this call: 403 (RFC 6750 §3.1), so clients do not sign in again',
  ],
} as const;

/** A check behind `auth`, and the policy that stands for it. */
const check = (behind: (original: Original) => ReturnType<Original['claimEquals']>, policy: Policy<unknown>) => ({
  before: ({ original }: { readonly original: Original }) => ({ behind: behind(original) }),
  after: { policy },
});
const always = check((original) => original.claimCheck(() => true), { claims: z.looseObject({}) });
const never = check((original) => original.claimCheck(() => false), { claims: z.looseObject({}).refine(() => false) });
const equals = check((original) => original.claimEquals('foo', 'bar'), {
  claims: z.looseObject({ foo: z.literal('bar') }),
});
/** `claimIncludes` on a claim that is a string of words, like on an array. */
const words = z.preprocess((value) => (typeof value === 'string' ? value.split(' ') : value), z.array(z.unknown()));
const includes = check((original) => original.claimIncludes('foo', 'bar', 'baz'), {
  claims: z.looseObject({ foo: words.refine((list) => ['bar', 'baz'].every((one) => list.includes(one))) }),
});
const listed = check((original) => original.claimIncludes('permissions', 'bar', 'baz'), {
  permissions: ['bar', 'baz'],
});
const scopes = check((original) => original.requiredScopes('foo bar'), { scopes: ['foo', 'bar'] });
const anyScope = check((original) => original.scopeIncludesAny('foo bar'), { anyScope: ['foo', 'bar'] });

/** Requirements of a route for a valid token. */
export const checkInputs: readonly Input[] = [
  { name: '`claimCheck` that says no', ...never, call: token(), ...forbidden },
  { name: '`claimCheck` that says yes', ...always, call: token(), was: '200' },
  { name: '`claimEquals`, claim absent', ...equals, call: token(), ...forbidden },
  { name: '`claimEquals`, another value', ...equals, call: token({ foo: 'baz' }), ...forbidden },
  { name: '`claimEquals`, the value', ...equals, call: token({ foo: 'bar' }), was: '200' },
  { name: '`claimIncludes`, claim absent', ...includes, call: token(), ...forbidden },
  { name: '`claimIncludes`, not in the text', ...includes, call: token({ foo: 'qux quxx' }), ...forbidden },
  { name: '`claimIncludes`, one of two in the list', ...includes, call: token({ foo: ['qux', 'bar'] }), ...forbidden },
  { name: '`claimIncludes`, a boolean', ...includes, call: token({ foo: true }), ...forbidden },
  { name: '`claimIncludes`, both in the text', ...includes, call: token({ foo: 'foo bar baz' }), was: '200' },
  { name: '`claimIncludes`, both in the list', ...includes, call: token({ foo: ['foo', 'bar', 'baz'] }), was: '200' },
  {
    name: '`claimIncludes` as `permissions`, both in the list',
    ...listed,
    call: token({ permissions: ['bar', 'baz'] }),
    was: '200',
  },
  {
    name: '`claimIncludes` as `permissions`, one of two',
    ...listed,
    call: token({ permissions: ['bar'] }),
    ...forbidden,
  },
  {
    name: '`claimIncludes` as `permissions`, both in a text',
    ...listed,
    call: token({ permissions: 'bar baz' }),
    was: '200',
    is: [
      '403 insufficient_scope',
      'the claim is a list; of a text make a list with a schema, or read it with `scopeClaim`',
    ],
  },
  { name: '`requiredScopes`, both', ...scopes, call: token({ scope: 'foo bar' }), was: '200' },
  { name: '`scopeIncludesAny`, both', ...anyScope, call: token({ scope: 'foo bar' }), was: '200' },
  { name: '`scopeIncludesAny`, one', ...anyScope, call: token({ scope: 'foo qux quxx' }), was: '200' },
];

const open = { before: () => ({ options: { authRequired: false } }), after: { credentials: 'optional' } } as const;
const broken = {
  was: '200, nobody known',
  is: ['401 invalid_token', 'a broken token is never taken for none: the client learns that it must renew it'],
} as const;

/** `authRequired: false`. */
export const openInputs: readonly Input[] = [
  { name: 'no token', ...open, call: () => ({}), was: '200, nobody known' },
  { name: 'a good token', ...open, call: token(), was: '200' },
  {
    name: 'text that is no JWT',
    ...open,
    call: () => ({ headers: ['Authorization', 'Bearer invalid.jwt'] }),
    ...broken,
  },
  { name: 'an expired token', ...open, call: token({ exp: 1 }), ...broken },
  {
    name: '`Host` with a path and a question mark',
    before: () => ({ options: { authRequired: false, dpop: { enabled: true } } }),
    after: { credentials: 'optional' },
    call: () => ({ headers: ['Host', 'localhost/evil?'] }),
    was: '200, nobody known',
  },
];
