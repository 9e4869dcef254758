import { runInNewContext } from 'node:vm';
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { AccessError, type Reason } from '../../../src/core/failures.ts';
import { allOf, anyOf, checkPolicy, namedScopes } from '../../../src/core/policy/checked-policy.ts';
import type { Policy } from '../../../src/core/policy/policy.ts';
import { Refused } from '../../../src/core/refused.ts';
import type { RegisteredClaims } from '../../../src/core/token/claims.ts';
import type { ClaimPath } from '../../../src/core/token/grants.ts';
import { readScopes } from '../../../src/core/token/grants.ts';
import type { JudgedToken } from '../../../src/core/token/token-policy.ts';

const now = 1_700_000_000;

function tokenOf(claims: Readonly<Record<string, unknown>>, permissionsClaim: ClaimPath = 'permissions'): JudgedToken {
  const all: RegisteredClaims = { iss: 'https://idp.example/', exp: now + 60, iat: now, ...claims };
  return {
    claims: Object.freeze(all), // as those of a verified token are
    scopes: readScopes(all, undefined),
    verifiedBy: { issuer: { expTolerance: 5, nbfTolerance: 5, permissionsClaim } },
  };
}

/** The claims for the handler, or the refusal. */
async function judge(policy: Policy<unknown>, token: JudgedToken): Promise<unknown> {
  const verdict = await checkPolicy({ ...policy }).judge({ token, now }); // a policy is read once: each case reads its own
  if (verdict instanceof Refused) throw verdict;
  return verdict === undefined ? token.claims : verdict.claims;
}

async function reasonOf(
  policy: Policy<unknown>,
  claims: Readonly<Record<string, unknown>>,
): Promise<Reason | 'granted'> {
  try {
    await judge(policy, tokenOf(claims));
    return 'granted';
  } catch (error) {
    if (error instanceof Refused) return error.reason;
    throw error;
  }
}

/** A schema of nobody's making: all that the standard asks of one. */
function schemaOf(validate: (value: unknown) => unknown): StandardSchemaV1 {
  return { '~standard': { version: 1, vendor: 'test', validate } } as StandardSchemaV1; // as of code without types
}

it('no requirements: any valid token is accepted, and its claims are unchanged', async () => {
  const token = tokenOf({});
  expect(await judge({}, token)).toBe(token.claims);
});

describe('scopes: all of them', () => {
  const needed: Policy = { scopes: ['read:messages'] };

  it('the scope among others, and all of several → granted', async () => {
    expect(await reasonOf(needed, { scope: 'openid read:messages profile' })).toBe('granted');
    expect(await reasonOf({ scopes: ['a', 'b'] }, { scope: 'b c a' })).toBe('granted');
  });

  it.each<[string, Policy, string | undefined]>([
    ['no scope', needed, undefined],
    ['another scope', needed, 'write:messages'],
    ['a prefix', needed, 'read'],
    ['another case', needed, 'Read:Messages'],
    ['one of several', { scopes: ['a', 'b'] }, 'a'],
  ])('%s → insufficient_scope, with all that is needed', async (_name, policy, scope) => {
    await expect(judge(policy, tokenOf({ scope }))).rejects.toMatchObject({
      reason: 'insufficient_scope',
      scopes: checkPolicy(policy).scopes,
    });
  });
});

describe('anyScope: one of them', () => {
  const policy: Policy = { anyScope: ['read:messages', 'admin'] };

  it.each([
    ['read:messages', 'granted'],
    ['openid admin', 'granted'],
    ['openid', 'no_accepted_scope'],
    [undefined, 'no_accepted_scope'],
  ])('%j → %s', async (scope, reason) => expect(await reasonOf(policy, { scope })).toBe(reason));

  it('the refusal names them all', () =>
    expect(judge(policy, tokenOf({}))).rejects.toMatchObject({ scopes: ['read:messages', 'admin'] }));
});

describe('permissions: all of them', () => {
  const policy: Policy = { permissions: ['a', 'b'] };

  it.each<[unknown, Reason | 'granted']>([
    [['c', 'b', 'a'], 'granted'],
    [['a'], 'missing_permission'],
    [[], 'missing_permission'],
    ['a b', 'missing_permission'],
    [{ a: true, b: true }, 'missing_permission'],
    [undefined, 'missing_permission'],
  ])('%j → %s', async (permissions, reason) => expect(await reasonOf(policy, { permissions })).toBe(reason));

  it('are read from the claim that the issuer uses', async () => {
    const claims = { roles: ['a', 'b'] };
    expect(await judge(policy, tokenOf(claims, 'roles'))).toMatchObject(claims);
    await expect(judge(policy, tokenOf({ permissions: ['a', 'b'] }, 'roles'))).rejects.toThrow(AccessError);
    await expect(judge(policy, tokenOf({}, 'constructor'))).rejects.toThrow(AccessError);
  });

  it('are read from a claim inside others', async () => {
    const path = ['realm_access', 'roles'];
    expect(await judge(policy, tokenOf({ realm_access: { roles: ['a', 'b'] } }, path))).toBeDefined();
    await expect(judge(policy, tokenOf({ realm_access: { roles: ['a'] } }, path))).rejects.toThrow(AccessError);
  });
});

describe('audience: one of them, in addition to the server’s', () => {
  it.each<[string | readonly string[], unknown, Reason | 'granted']>([
    ['orders', 'orders', 'granted'],
    ['orders', ['billing', 'orders'], 'granted'],
    [['orders', 'billing'], 'billing', 'granted'],
    ['orders', 'billing', 'invalid_audience'],
    ['orders', ['billing'], 'invalid_audience'],
    ['orders', 'Orders', 'invalid_audience'],
    ['orders', undefined, 'invalid_audience'],
  ])('%j, aud %j → %s', async (audience, aud, reason) => expect(await reasonOf({ audience }, { aud })).toBe(reason));

  it.each([[[]], [''], [['']], [7], [[7]]])('%j → TypeError', (audience) =>
    expect(() => checkPolicy({ audience } as unknown as Policy)).toThrow(TypeError),
  );
});

describe('acr and maxAge: how the user signed in', () => {
  it.each<[Policy, Readonly<Record<string, unknown>>, Reason | 'granted']>([
    [{ acr: ['gold', 'silver'] }, { acr: 'silver' }, 'granted'],
    [{ acr: 'gold' }, { acr: 'silver' }, 'unaccepted_acr'],
    [{ acr: 'gold' }, {}, 'unaccepted_acr'],
    [{ maxAge: 60 }, { auth_time: now - 60 }, 'granted'],
    [{ maxAge: 60 }, { auth_time: now - 65 }, 'granted'],
    [{ maxAge: 60 }, { auth_time: now - 66 }, 'authentication_too_old'],
    [{ maxAge: 0 }, { auth_time: now }, 'granted'],
    [{ maxAge: 0 }, { auth_time: now - 6 }, 'authentication_too_old'],
    [{ maxAge: 60 }, {}, 'missing_auth_time'],
    [{ maxAge: 60 }, { auth_time: String(now) }, 'missing_auth_time'],
    [{ maxAge: 60 }, { auth_time: -1 }, 'missing_auth_time'],
    [{ maxAge: 60 }, { auth_time: now + 5 }, 'granted'],
    [{ maxAge: 60 }, { auth_time: now + 6 }, 'missing_auth_time'],
    [{ maxAge: 60 }, { auth_time: now * 1000 }, 'missing_auth_time'],
    [{ acr: 'gold', maxAge: 60 }, { acr: 'gold', auth_time: now - 99 }, 'authentication_too_old'],
    [{ acr: 'gold', maxAge: 60 }, { auth_time: now }, 'unaccepted_acr'],
  ])('%j, token with %j → %s', async (policy, claims, reason) => expect(await reasonOf(policy, claims)).toBe(reason));

  it.each<[Policy, object]>([
    [{ acr: 'gold' }, { acrValues: ['gold'], maxAge: undefined }],
    [{ maxAge: 5 }, { acrValues: [], maxAge: 5 }],
    [
      { acr: ['gold', 'silver'], maxAge: 5 },
      { acrValues: ['gold', 'silver'], maxAge: 5 },
    ],
  ])('%j → the refusal tells the whole of it, so that the client steps up once', (policy, stepUp) =>
    expect(judge(policy, tokenOf({}))).rejects.toMatchObject({ stepUp }),
  );
});

describe('claims: what a schema gives', () => {
  const schemas = [
    ['zod', z.object({ sub: z.string(), level: z.coerce.number().min(2) })],
    ['valibot', v.object({ sub: v.string(), level: v.pipe(v.string(), v.transform(Number), v.minValue(2)) })],
    ['arktype', type({ '+': 'delete', sub: 'string', level: type('string.numeric.parse').to('number>=2') })],
    ['zod, which waits', z.object({ sub: z.string(), level: z.coerce.number().refine(async (level) => level >= 2) })],
    [
      'valibot, which waits',
      v.objectAsync({
        sub: v.string(),
        level: v.pipeAsync(
          v.string(),
          v.transform(Number),
          v.checkAsync(async (level) => level >= 2),
        ),
      }),
    ],
  ] as const;

  it.each(schemas)('%s: its output is what the handler gets', async (_name, claims) =>
    expect(await judge({ claims }, tokenOf({ sub: 'alice', level: '3' }))).toEqual({ sub: 'alice', level: 3 }),
  );

  it.each(schemas)(
    '%s: what does not fit → unaccepted_claims, with the first member and no value',
    async (_name, claims) => {
      const expected = { reason: 'unaccepted_claims', context: { claim: 'level' } };
      await expect(judge({ claims }, tokenOf({ sub: 'alice', level: '1' }))).rejects.toMatchObject(expected);
      expect(await reasonOf({ claims }, { level: '3' })).toBe('unaccepted_claims');
    },
  );

  it('a schema that writes into its input → the claims are unchanged', async () => {
    const roles = Object.freeze(['reader']);
    const token = tokenOf({ address: Object.freeze({ city: 'Paris' }), roles });
    const claims = v.pipe(
      v.looseObject({ address: v.looseObject({}), roles: v.array(v.string()) }),
      v.rawTransform(({ dataset }) => Object.assign(dataset.value, { sub: 'changed' })),
    );
    const rude = type({ '+': 'delete', roles: type('string[]').pipe((names) => names.reverse()) });
    expect(await judge({ claims }, token)).toMatchObject({ address: { city: 'Paris' }, roles, sub: 'changed' });
    expect(await judge({ claims: rude }, token)).toEqual({ roles });
    expect(token.claims).toMatchObject({ address: { city: 'Paris' }, roles });
    expect(token.claims['sub']).toBeUndefined();
    const writer = schemaOf((value) => {
      (value as { roles: string[] }).roles.push('writer');
      return { value };
    });
    expect(await judge({ claims: writer }, token)).toMatchObject({ roles: ['reader', 'writer'] });
    expect(roles).toEqual(['reader']);
  });

  it('a schema that refuses without an issue → refused', () => {
    const refused = judge({ claims: schemaOf(() => ({ issues: [] })) }, tokenOf({}));
    return expect(refused).rejects.toMatchObject({ reason: 'unaccepted_claims', context: { claim: '' } });
  });

  it('a synchronous schema → no promise', () => {
    const [[, claims]] = schemas;
    expect(checkPolicy({ claims }).judge({ token: tokenOf({ sub: 'alice', level: 2 }), now })).not.toBeInstanceOf(
      Promise,
    );
  });

  it.each<[readonly unknown[] | undefined, string]>([
    [undefined, ''],
    [['address', { key: 'city' }, 0], 'address.city.0'],
    [[Symbol('name')], 'Symbol(name)'],
    [['x'.repeat(300)], 'x'.repeat(200)],
  ])('an issue at %j → the context names %j', async (path, claim) => {
    const result = { issues: [{ message: 'not for the log', ...(path !== undefined && { path }) }] };
    const claims = schemaOf(() => result);
    const error: unknown = await judge({ claims }, tokenOf({})).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ context: { claim } });
    expect(JSON.stringify(error)).not.toContain('not for the log');
  });

  it('runs only when all else holds', async () => {
    const check = vi.fn(() => true);
    const policy = { scopes: ['a'], claims: z.object({}).refine(check) };
    expect(await reasonOf(policy, {})).toBe('insufficient_scope');
    expect(check).not.toHaveBeenCalled();
  });

  it('a schema that throws → its error, not a refusal of the table', async () => {
    const broken = new Error('broken');
    const claims = z.unknown().transform(() => {
      throw broken;
    });
    await expect(judge({ claims }, tokenOf({}))).rejects.toBe(broken);
  });
});

describe('anyOf: one is enough', () => {
  const policy = anyOf({ scopes: ['read:messages'] }, { permissions: ['messages:read'] });

  it.each<[Readonly<Record<string, unknown>>, Reason | 'granted']>([
    [{ scope: 'read:messages' }, 'granted'],
    [{ permissions: ['messages:read'] }, 'granted'],
    [{ scope: 'messages:read', permissions: ['read:messages'] }, 'insufficient_scope'],
    [{}, 'insufficient_scope'],
  ])('a token with %j → %s', async (claims, reason) => expect(await reasonOf(policy, claims)).toBe(reason));

  it('the claims are what the one that holds gives', async () => {
    const admin = z.object({ admin: z.literal(true), level: z.number().default(9) });
    const either = anyOf({ claims: admin }, { scopes: ['read'] });
    const reader = tokenOf({ scope: 'read' });
    expect(await judge(either, tokenOf({ admin: true }))).toEqual({ admin: true, level: 9 });
    expect(await judge(either, reader)).toBe(reader.claims);
  });

  it('waits where a schema does, and goes on behind it', async () => {
    const never = z.object({}).refine(async () => false);
    const always = z.object({}).refine(async () => true);
    expect(await reasonOf(anyOf({ claims: never }, { scopes: ['read'] }), { scope: 'read' })).toBe('granted');
    expect(await reasonOf(anyOf({ claims: never }, { claims: always }), {})).toBe('granted');
    expect(await reasonOf(anyOf({ claims: never }, { scopes: ['read'] }), {})).toBe('unaccepted_claims');
  });
});

describe('allOf: none may be missing', () => {
  it.each<[Readonly<Record<string, unknown>>, Reason | 'granted']>([
    [{ scope: 'a', permissions: ['p'], acr: 'gold' }, 'granted'],
    [{ scope: 'b', permissions: ['p'], acr: 'gold' }, 'granted'],
    [{ permissions: ['p'], acr: 'gold' }, 'insufficient_scope'],
    [{ scope: 'a', acr: 'gold' }, 'missing_permission'],
    [{ scope: 'a', permissions: ['p'] }, 'unaccepted_acr'],
  ])('a token with %j → %s', async (claims, reason) => {
    const policy = allOf(anyOf({ scopes: ['a'] }, { scopes: ['b'] }), { permissions: ['p'] }, { acr: 'gold' });
    expect(await reasonOf(policy, claims)).toBe(reason);
  });

  it('the handler gets the members of each schema; a later schema wins', async () => {
    const policy = allOf(
      { claims: z.object({ sub: z.string(), level: z.unknown() }) },
      { scopes: ['read'] },
      { claims: z.object({ level: z.number() }).transform(async ({ level }) => ({ level: level + 1 })) },
    );
    expect(await judge(policy, tokenOf({ sub: 'alice', scope: 'read', level: 1 }))).toEqual({ sub: 'alice', level: 2 });
  });

  it('next to a schema, an alternative without one gives the claims unchanged', async () => {
    const policy = allOf(anyOf({ claims: z.object({ admin: z.literal(true) }) }, { scopes: ['read'] }), {
      claims: z.object({ level: z.number().default(1) }),
    });
    expect(await judge(policy, tokenOf({ admin: true }))).toEqual({ admin: true, level: 1 });
    expect(await judge(policy, tokenOf({ scope: 'read', sub: 'bob' }))).toMatchObject({ sub: 'bob', level: 1 });
  });

  it('schemas that do not give objects cannot be put together → TypeError', async () => {
    const text = z.object({}).transform(() => 'text');
    const mixed = allOf({ claims: text }, { claims: z.object({}) });
    await expect(judge(mixed, tokenOf({}))).rejects.toThrow(TypeError);
    await expect(judge(mixed, tokenOf({}))).rejects.toThrow(/must all give objects/);
    await expect(judge(allOf({ claims: z.object({}) }, { claims: text }), tokenOf({}))).rejects.toThrow(TypeError);
  });
});

it.each<[Policy<unknown> | undefined, readonly string[]]>([
  [undefined, []],
  [{}, []],
  [{ permissions: ['a'] }, []],
  [{ scopes: ['a'], anyScope: ['b', 'c'] }, ['a', 'b', 'c']],
  [allOf({ scopes: ['a'] }, { scopes: ['b', 'a'] }), ['a', 'b']],
  [anyOf({ permissions: ['p'] }, { scopes: ['a'] }, { scopes: ['b'] }), ['a']],
  [anyOf({ permissions: ['p'] }, { permissions: ['q'] }), []],
])('scopes of the challenge: %j → %j', (policy, scopes) => expect(namedScopes(policy)).toEqual(scopes));

describe('undefined, or an invalid result', () => {
  it.each(['scopes', 'anyScope', 'permissions', 'acr', 'maxAge', 'claims'])('{ %s: undefined } → TypeError', (name) => {
    const policy = { [name]: undefined } as Policy;
    expect(() => checkPolicy(policy)).toThrow(`policy: ${name} is undefined; write a value, or leave it out`);
    expect(() => allOf({ scopes: ['a'] }, policy)).toThrow(TypeError);
  });

  /** A schema that gives this, whatever it is given. */
  const giving = (result: unknown): Policy<unknown> => ({ claims: schemaOf(() => result) });
  const thenable = (result: unknown) => ({
    // biome-ignore lint/suspicious/noThenProperty: what is tested is that it is waited for
    then: (resolve: (value: unknown) => void) => resolve(result),
  });
  const foreign = (code: string): unknown => runInNewContext(code);

  it.each([
    ['a thenable', () => thenable({ issues: [{ message: 'no' }] })],
    ['a promise of another realm', () => foreign('Promise.resolve({ issues: [{ message: "no" }] })')],
    ['a list of another realm', () => foreign('({ issues: [{ message: "no" }] })')],
    ['issues that are no list', () => ({ issues: true, value: {} })],
  ])('%s that refuses → refused', async (_name, make) =>
    expect(await reasonOf(giving(make()), {})).toBe('unaccepted_claims'),
  );

  it.each([
    ['a thenable', () => thenable({ value: { sub: 'given' } })],
    ['a promise of another realm', () => foreign('Promise.resolve({ value: { sub: "given" } })')],
  ])('%s that gives claims → awaited', async (_name, make) =>
    expect(await judge(giving(make()), tokenOf({}))).toEqual({ sub: 'given' }),
  );

  it.each([
    ['{}', {}],
    ['true', true],
    ['false', false],
    ['nothing', undefined],
    ['null', null],
    ['a value that is not its own', Object.create({ value: {} })],
    ['a promise of {}', Promise.resolve({})],
  ])('%s → TypeError, no request is admitted', (_name, result) =>
    expect(judge(giving(result), tokenOf({}))).rejects.toThrow('gave neither issues nor a value'),
  );
});

describe('a policy that cannot work → TypeError that says the fix', () => {
  it.each<[unknown, RegExp]>([
    [undefined, /write an object, as in/],
    [null, /write an object, as in/],
    ['read:messages', /write an object, as in/],
    [['read:messages'], /write an object, as in \{ scopes:/],
    [
      Promise.resolve({ scopes: ['read:messages'] }),
      /write an object with any of audience, scopes, .*; await a promise/,
    ],
    [new Map([['scopes', ['read:messages']]]), /write an object with any of audience, scopes/],
    [new Request('https://api.test/'), /write an object with any of audience, scopes/],
    [{ mode: 'all', policies: [{}, Promise.resolve({})] }, /write an object with any of audience, scopes/],
    [{ acr: new Array(1) }, /acr must have one string for each/],
    [{ scopes: new Array(1) }, /scopes must have one string for each/],
    [
      { scope: 'read:messages' },
      /there is no scope; write any of audience, scopes, anyScope, permissions, implies, actor, acr, maxAge, claims/,
    ],
    [{ scopes: [] }, /scopes must be a list with at least one string; leave it out/],
    [{ scopes: 'read:messages' }, /scopes must be a list with at least one string/],
    [{ scopes: [7] }, /scopes must have one string for each/],
    [{ scopes: ['read:messages write:messages'] }, /scopes must have one string for each, without spaces/],
    [{ permissions: [] }, /permissions must be a list with at least one string/],
    [{ acr: [] }, /acr must be a list with at least one string/],
    [{ acr: 7 }, /acr must be a list with at least one string/],
    [{ maxAge: -1 }, /maxAge in whole seconds/],
    [{ maxAge: 1.5 }, /maxAge in whole seconds/],
    [{ maxAge: '60' }, /maxAge in whole seconds/],
    [{ claims: { sub: 'string' } }, /claims is a Standard Schema, such as/],
    [{ claims: null }, /claims is a Standard Schema, such as/],
    [{ claims: { '~standard': {} } }, /claims is a Standard Schema, such as/],
    [{ mode: 'all', policies: [] }, /at least one policy/],
    [{ mode: 'some', policies: [{}] }, /combine with allOf/],
    [{ mode: 'all', policies: [{}], scopes: ['a'] }, /there is no scopes/],
    [{ mode: 'any', policies: [{ scopes: [] }] }, /scopes must be a list with at least one string/],
  ])('%j', (policy, fix) => {
    const check = () => checkPolicy(policy as Policy); // as from code without types
    expect(check).toThrow(TypeError);
    expect(check).toThrow(fix);
    expect(check).toThrow(/^policy: /);
    expect(namedScopes((policy ?? undefined) as Policy | undefined)).toEqual([]);
  });

  it.each([allOf, anyOf])('%s with one that cannot, at once', (combine) => {
    expect(() => combine({ scopes: [] })).toThrow(/^policy: scopes must be a list/);
    expect(() => (combine as () => unknown)()).toThrow(/^policy: .* at least one policy/);
  });
});

it('a policy is read once: later changes are ignored', () => {
  const scopes = ['a'];
  const policy = { scopes };
  expect(checkPolicy(policy)).toBe(checkPolicy(policy));
  scopes[0] = 'b';
  expect(checkPolicy(policy).judge({ token: tokenOf({ scope: 'a' }), now })).toBeUndefined();
  expect(namedScopes(policy)).toEqual(['a']);
});
