import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { createProtect } from '../../../src/adapters/fetch.ts';
import {
  type Access,
  allOf,
  anyOf,
  type Claims,
  createResourceServer,
  type Policy,
  type TrustedIssuer,
} from '../../../src/index.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';

const issuer = createTestIssuer({ alg: 'ES256' });
const server = createResourceServer({ issuers: [issuer], audience: issuer.audience, algorithms: ['ES256'] });
const protect = createProtect(server);
const request = () =>
  new Request('https://api.test/', { headers: issuer.headers({ sub: 'alice', level: '3', scope: 'read' }) });

const schemas = {
  zod: z.object({ sub: z.string(), level: z.coerce.number() }),
  valibot: v.object({ sub: v.string(), level: v.pipe(v.string(), v.transform(Number)) }),
  arktype: type({ '+': 'delete', sub: 'string', level: 'string.numeric.parse' }),
};

interface Expected {
  sub: string;
  level: number;
}
const expected = { sub: 'alice', level: 3 };

describe('claims for the handler', () => {
  it('without a schema → claims of the token', async () => {
    const access = await server.authorize(request(), { scopes: ['read'] });
    expectTypeOf(access).toEqualTypeOf<Access>();
    expectTypeOf(access.claims).toEqualTypeOf<Claims>();
    expectTypeOf(access.claims['level']).toBeUnknown();
    expectTypeOf(await server.authorize(request())).toEqualTypeOf<Access>();
    expect(access.claims['level']).toBe('3');
  });

  it('zod, valibot, arktype: what the schema gives', async () => {
    const { claims: ofZod } = await server.authorize(request(), { claims: schemas.zod });
    expectTypeOf(ofZod).toEqualTypeOf<Expected>();
    const { claims: ofValibot } = await server.authorize(request(), { claims: schemas.valibot });
    expectTypeOf(ofValibot).toEqualTypeOf<Expected>();
    const { claims: ofArktype } = await server.authorize(request(), { claims: schemas.arktype });
    expectTypeOf(ofArktype).toEqualTypeOf<Expected>();
    expect([ofZod, ofValibot, ofArktype]).toEqual([expected, expected, expected]);
  });

  it('a policy with its own name keeps them', async () => {
    const policy = { scopes: ['read'], claims: schemas.zod };
    expectTypeOf(policy).toExtend<Policy<Expected>>();
    expectTypeOf((await server.authorize(request(), policy)).claims).toEqualTypeOf<Expected>();
  });

  it('a policy without a schema does not give claims', () => {
    expectTypeOf<{ scopes: string[] }>().toExtend<Policy>();
    expectTypeOf<{ scopes: string[] }>().not.toExtend<Policy<Expected>>();
    expectTypeOf<Policy<Expected>>().toExtend<Policy<unknown>>();
  });
});

describe('combined policies', () => {
  it('allOf: the members that each schema gives', async () => {
    const tenant = z.object({ scope: z.string() });
    const policy = allOf({ scopes: ['read'] }, { claims: schemas.zod }, { claims: tenant });
    const { claims } = await server.authorize(request(), policy);
    expectTypeOf(claims).toEqualTypeOf<Expected & { scope: string }>();
    expect(claims).toEqual({ ...expected, scope: 'read' });
  });

  it('anyOf: what one of the schemas gives', async () => {
    const admin = z.object({ admin: z.literal(true) });
    const { claims } = await server.authorize(request(), anyOf({ claims: admin }, { claims: schemas.zod }));
    expectTypeOf(claims).toEqualTypeOf<{ admin: true } | Expected>();
    expect(claims).toEqual(expected);
  });

  it('an empty combination is refused', () => {
    // @ts-expect-error one policy at least
    expect(() => allOf()).toThrow(TypeError);
    // @ts-expect-error one policy at least
    expect(() => anyOf()).toThrow(TypeError);
  });
});

describe('routes', () => {
  const showLevel = (_request: Request, access: Access<Expected>) => Response.json({ level: access.claims.level });

  it('a handler gets the claims of its policy', async () => {
    const inferred = protect({ claims: schemas.zod }, (each, access) => {
      expectTypeOf(access).toEqualTypeOf<Access<Expected>>();
      return showLevel(each, access);
    });
    for (const route of [inferred, protect({ claims: schemas.arktype }, showLevel)]) {
      expect(await (await route(request())).json()).toEqual({ level: 3 });
    }
  });

  it('a handler without a policy → does not compile, TypeError', () => {
    const handler = (_request: Request, access: Access) => Response.json(access.claims);
    // @ts-expect-error a policy comes first
    expect(() => protect(handler)).toThrow(TypeError);
    protect({}, handler);
  });

  it('nor one that takes other claims than its policy gives', () => {
    // @ts-expect-error no schema gives a level
    protect({ scopes: ['read'] }, showLevel);
    // @ts-expect-error the schema gives none either
    protect({ claims: z.object({ sub: z.string() }) }, showLevel);
    protect({ claims: schemas.valibot }, showLevel);
  });

  it.each([
    // @ts-expect-error a list
    () => protect({ scopes: 'read' }, () => new Response()),
    // @ts-expect-error scopes
    () => protect({ scope: ['read'] }, () => new Response()),
    // @ts-expect-error no schema
    () => protect({ claims: { sub: 'string' } }, () => new Response()),
  ])('a policy that cannot work is refused by the compiler, and where it is mounted (%#)', (mount) =>
    expect(mount).toThrow(/^policy: /),
  );
});

describe('options', () => {
  it('the global fetch will do', () => {
    const open = () => createResourceServer({ issuer: 'idp.example', audience: 'api', fetch });
    expectTypeOf(open).returns.toHaveProperty('close');
    open().close();
  });

  it('a test issuer is a trusted issuer, and its JWK set is one', () => {
    expectTypeOf(issuer).toExtend<TrustedIssuer>();
    createResourceServer({ issuer: issuer.issuer, keys: issuer.jwks, audience: 'api' });
  });
});
