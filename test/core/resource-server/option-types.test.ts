import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { Hono } from 'hono';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { createAuthorize as createExpressAuthorize } from '../../../src/adapters/express.ts';
import { createAuthorize as createFastifyAuthorize } from '../../../src/adapters/fastify.ts';
import { createProtect as createFetchProtect } from '../../../src/adapters/fetch.ts';
import { createAuthorize as createHonoAuthorize } from '../../../src/adapters/hono.ts';
import { createProtect as createNodeProtect } from '../../../src/adapters/node.ts';
import {
  type Access,
  type AccessError,
  allOf,
  anyOf,
  type Claims,
  createKeySet,
  createResourceServer,
  type Policy,
  type RegisteredClaims,
  type ResourceServer,
  type ResourceServerOptions,
  type TrustedIssuer,
} from '../../../src/index.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';

const issuer = createTestIssuer({ alg: 'ES256' });
const { audience } = issuer;
const strict = createResourceServer({ issuers: [issuer], audience, algorithms: ['ES256'] });
const lenient = createResourceServer({ issuers: [issuer], audience, algorithms: ['ES256'], subject: 'optional' });
const request = (claims = {}) => new Request('https://api.test/', { headers: issuer.headers(claims) });

describe('claims', () => {
  it('sub is a string if required, and else may be absent', async () => {
    const { claims } = await strict.authorize(request());
    expectTypeOf(claims.sub).toEqualTypeOf<string>();
    expect(claims.sub).toBe('test-subject');
    const anybody = await lenient.authorize(request({ sub: undefined }));
    expectTypeOf(anybody.claims.sub).toEqualTypeOf<string | undefined>();
    expect(anybody.claims.sub).toBeUndefined();
  });

  it('registered claims have types, others are unknown', async () => {
    const { claims } = await strict.authorize(request({ level: 3 }));
    expectTypeOf(claims.iss).toEqualTypeOf<string>();
    expectTypeOf(claims.exp).toEqualTypeOf<number>();
    expectTypeOf(claims.iat).toEqualTypeOf<number | undefined>();
    expectTypeOf(claims.aud).toEqualTypeOf<string | readonly string[] | undefined>();
    expectTypeOf(claims.client_id).toEqualTypeOf<string | undefined>();
    expectTypeOf(claims.jti).toEqualTypeOf<string | undefined>();
    expectTypeOf(claims['level']).toBeUnknown();
    expect(claims.client_id).toBe('test-client');
  });

  it('handlers of every adapter get the same', () => {
    createFetchProtect(strict)({}, (_, { claims }) => Response.json(expectTypeOf(claims).toEqualTypeOf<Claims>()));
    createFetchProtect(lenient)({}, (_, { claims }) =>
      Response.json(expectTypeOf(claims).toEqualTypeOf<RegisteredClaims>()),
    );
    createNodeProtect(lenient)({}, (_, __, { claims }) => expectTypeOf(claims.sub).toEqualTypeOf<string | undefined>());
  });

  it('combined policies without a schema → the claims that the server gives', async () => {
    const either = anyOf({ scopes: ['read'] }, allOf({ permissions: ['read'] }, { acr: 'gold' }));
    expectTypeOf(either).toExtend<Policy>();
    createFetchProtect(lenient)(either, (_, { claims }) =>
      Response.json(expectTypeOf(claims).toEqualTypeOf<RegisteredClaims>()),
    );
    createFetchProtect(strict)(either, (_, { claims }) => Response.json(expectTypeOf(claims).toEqualTypeOf<Claims>()));
    const { claims } = await lenient.authorize(request({ sub: undefined, scope: 'read' }), either);
    expectTypeOf(claims.sub).toEqualTypeOf<string | undefined>();
    expect(claims.sub).toBeUndefined();
  });

  it('anyOf with an alternative that has no schema → the claims of that server or the claims of the schema', async () => {
    const policy = anyOf({ claims: z.object({ admin: z.literal(true) }) }, { scopes: ['read'] });
    const call = request({ sub: undefined, scope: 'read' });
    const { claims } = await lenient.authorize(call, policy);
    expectTypeOf(claims).toEqualTypeOf<{ admin: true } | RegisteredClaims>();
    expect(claims).not.toHaveProperty('sub');
    const judged = await lenient.judge(call, policy);
    expectTypeOf(judged).toEqualTypeOf<Access<{ admin: true } | RegisteredClaims> | AccessError>();
    expectTypeOf((await strict.authorize(request({ scope: 'read' }), policy)).claims).toEqualTypeOf<
      { admin: true } | Claims
    >();
    createFetchProtect(lenient)(policy, (_, access) =>
      Response.json(expectTypeOf(access.claims).toEqualTypeOf(claims)),
    );
    new Hono().get('/', createHonoAuthorize(lenient).optional(policy), (c) => {
      expectTypeOf(c.var.access).toEqualTypeOf<Access<{ admin: true } | RegisteredClaims> | undefined>();
      return c.body(null);
    });
    createNodeProtect(lenient)(policy, (_, __, access) => expectTypeOf(access.claims).toEqualTypeOf(claims));
    new Hono().get('/', createHonoAuthorize(lenient)(policy), (c) => {
      expectTypeOf(c.var.access.claims).toEqualTypeOf<{ admin: true } | RegisteredClaims>();
      return c.body(null);
    });
  });

  it('a policy of the type Policy: the claims that the server gives', async () => {
    const policy: Policy = { scopes: ['read'] };
    const { claims } = await lenient.authorize(request({ sub: undefined, scope: 'read' }), policy);
    expectTypeOf(claims).toEqualTypeOf<RegisteredClaims>();
    expectTypeOf((await strict.authorize(request({ scope: 'read' }), policy)).claims).toEqualTypeOf<Claims>();
    expectTypeOf(createExpressAuthorize(lenient).accessOf<Claims>).returns.toEqualTypeOf<Access<RegisteredClaims>>();
    expectTypeOf(createExpressAuthorize(strict).accessOf<Claims>).returns.toEqualTypeOf<Access>();
  });

  it('behind middleware: accessOf of a server has the claims of that server', async () => {
    const authorize = createHonoAuthorize(lenient);
    const leveled = { claims: z.object({ level: z.number() }) };
    const app = new Hono()
      .get('/', authorize(), (c) => {
        expectTypeOf(c.var.access.claims.sub).toEqualTypeOf<string | undefined>();
        expectTypeOf(authorize.accessOf(c).claims.sub).toEqualTypeOf<string | undefined>();
        expectTypeOf(createHonoAuthorize(strict).accessOf<Claims>).returns.toEqualTypeOf<Access>();
        return c.json({ sub: authorize.accessOf(c).claims.sub ?? null });
      })
      .get('/leveled', authorize(leveled), (c) => {
        const { claims } = authorize.accessOf(c, leveled);
        expectTypeOf(claims).toEqualTypeOf<{ level: number }>();
        return c.json(claims);
      });
    const call = async (path: string, claims: object) =>
      (await app.request(path, { headers: request(claims).headers })).json();
    expect(await call('/', { sub: undefined })).toEqual({ sub: null });
    expect(await call('/leveled', { level: 3 })).toEqual({ level: 3 });
    const incoming = new IncomingMessage(new Socket());
    const inExpress = createExpressAuthorize(lenient).findAccess(incoming);
    expectTypeOf(inExpress).toEqualTypeOf<Access<RegisteredClaims> | undefined>();
    const inFastify = createFastifyAuthorize(lenient).findAccess({ raw: incoming });
    expectTypeOf(inFastify).toEqualTypeOf<Access<RegisteredClaims> | undefined>();
    expect([inExpress, inFastify]).toEqual([undefined, undefined]);
  });

  it('a server with optional sub → not assignable to a server with required sub', () => {
    expectTypeOf(strict).toExtend<ResourceServer>();
    expectTypeOf(lenient).not.toExtend<ResourceServer>();
    expectTypeOf(strict).toExtend<ResourceServer<RegisteredClaims>>();
  });
});

describe('options', () => {
  it('recipients are required: audience or clientIds, here or in the rules of each issuer', () => {
    const withRules = { issuer: 'https://a.test/', rules: { audience } };
    const withClients = { issuer: 'https://b.test/', rules: { clientIds: ['web'] } };
    const right: readonly ResourceServerOptions[] = [
      { issuer: 'idp.test', audience },
      { issuer: 'idp.test', audience: [audience] },
      { issuer: 'idp.test', clientIds: ['web'] },
      { issuer: 'idp.test', audience, clientIds: ['web'] },
      { issuers: [withRules, withClients] },
      { issuers: [withRules, 'idp.test'], audience },
      { issuers: { find: () => undefined }, audience },
    ];
    for (const options of right) expect(() => createResourceServer(options)).not.toThrow();
    // @ts-expect-error: nobody does
    expect(() => createResourceServer({ issuer: 'idp.test' })).toThrow(/^audience: /);
    // @ts-expect-error: nobody does
    expect(() => createResourceServer({ issuers: [issuer] })).toThrow(/^audience: /);
    // @ts-expect-error: no issuer
    expect(() => createResourceServer({ audience })).toThrow(/^issuer: /);
    // @ts-expect-error: one of them does not
    expect(() => createResourceServer({ issuers: [withRules, { issuer: 'https://c.test/' }] })).toThrow(/^audience: /);
  });

  it('algorithms by name', () => {
    createResourceServer({ issuer: 'idp.test', audience, algorithms: ['RS256', 'EdDSA', 'ES512'] });
    createResourceServer({ issuer: 'idp.test', audience, dpop: { algorithms: ['ES256', 'PS256'] } });
    // @ts-expect-error: never allowed
    expect(() => createResourceServer({ issuer: 'idp.test', audience, algorithms: ['HS256'] })).toThrow(TypeError);
    // @ts-expect-error: not spelled so
    expect(() => createResourceServer({ issuer: 'idp.test', audience, algorithms: ['rs256'] })).toThrow(TypeError);
    const dpop = { algorithms: ['RS512'] } as const;
    // @ts-expect-error: not for proofs
    expect(() => createResourceServer({ issuer: 'idp.test', audience, dpop })).toThrow(TypeError);
  });

  it('trustProxy: true → refused by the compiler, and by name', () => {
    // @ts-expect-error: it names nobody
    const create = () => createResourceServer({ issuer: 'idp.test', audience, trustProxy: true });
    expect(create).toThrow(/^trustProxy: write 'none', 'all', or a list .*; true is none of these$/);
  });

  it('a key set needs an issuer or a place', () => {
    createKeySet({ issuer: 'https://idp.test/' }).close();
    createKeySet({ jwksUri: 'https://idp.test/jwks' }).close();
    // @ts-expect-error: neither
    expect(() => createKeySet({})).toThrow(/^createKeySet: write issuer, jwksUri, or both$/);
    expect(() => createKeySet({ jwksUri: 'https://idp.test/jwks', fallback: 'none' })).toThrow(/^fallback: /);
  });
});

describe('issuers with find', () => {
  const tenants = new Map<string, TrustedIssuer>([[issuer.issuer, issuer]]);

  it('returns any entry of a list, or a promise; its parameters have types', () => {
    const options = { audience, algorithms: ['ES256'] } as const;
    createResourceServer({ ...options, issuers: { find: (iss) => tenants.get(iss) } });
    createResourceServer({ ...options, issuers: { find: async (iss, { url }) => (url === iss ? iss : undefined) } });
    createResourceServer({ issuers: { find: (iss) => ({ issuer: iss, rules: { audience: 'a' } }) } });
    // @ts-expect-error: nothing states the audience
    createResourceServer({ issuers: { find: (iss) => iss } });
    // @ts-expect-error: not an issuer
    createResourceServer({ ...options, issuers: { find: () => 5 } });
    // @ts-expect-error: there is no such member
    createResourceServer({ ...options, issuers: { find: (iss) => iss, close: () => undefined } });
  });
});
