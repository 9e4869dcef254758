import { type TypeBoxTypeProvider, TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import express, { type Request } from 'express';
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { type Context, Hono } from 'hono';
import { hc } from 'hono/client';
import { validator } from 'hono/validator';
import { Type } from 'typebox';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import * as inExpress from '../../src/adapters/express.ts';
import * as inFastify from '../../src/adapters/fastify.ts';
import * as inFetch from '../../src/adapters/fetch.ts';
import * as inHono from '../../src/adapters/hono.ts';
import * as inNest from '../../src/adapters/nest.ts';
import * as inNode from '../../src/adapters/node.ts';
import { type Access, createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../src/core/token/claims.ts';
import { issuer } from './issuer.ts';
import { createServers, policy } from './scene.ts';

const server = createServers(issuer).usual;
const headers = () => issuer.headers({ sub: 'alice', scope: 'read:messages', level: 3 });
const leveled = { ...policy, claims: z.object({ sub: z.string(), level: z.number() }) };
const json = validator('json', (value: unknown) => z.object({ text: z.string() }).parse(value));
const message = JSON.stringify({ text: 'hello' });
const asJson = { 'content-type': 'application/json' };

describe('hono', () => {
  const authorize = inHono.createAuthorize(server);

  it('authorize: parameters, validated bodies, claims and the results of hc have their types', async () => {
    const app = new Hono()
      .get('/messages/:id', authorize(policy), (c) => {
        expectTypeOf(c.req.param('id')).toEqualTypeOf<string>();
        expectTypeOf(c.var.access).toEqualTypeOf<Access>();
        return c.json({ id: c.req.param('id'), scheme: c.var.access.scheme });
      })
      .post('/messages', authorize(leveled), json, (c) => {
        expectTypeOf(c.req.valid('json')).toEqualTypeOf<{ text: string }>();
        expectTypeOf(c.var.access.claims).toEqualTypeOf<{ sub: string; level: number }>();
        return c.json({ text: c.req.valid('json').text, level: c.var.access.claims.level });
      })
      .get('/open', authorize.optional(policy), (c) => {
        expectTypeOf(c.var.access).toEqualTypeOf<Access | undefined>();
        return c.json({ known: c.var.access !== undefined });
      });
    const client = hc<typeof app>('http://api.test', { fetch: app.request });
    const read = await client.messages[':id'].$get({ param: { id: '7' } }, { headers: headers() });
    const answer = await read.json();
    expectTypeOf(answer).toEqualTypeOf<{ id: string; scheme: 'Bearer' | 'DPoP' }>();
    expect(answer).toEqual({ id: '7', scheme: 'Bearer' });
    const sent = await client.messages.$post({ json: { text: 'hello' } }, { headers: headers() });
    const kept = await sent.json();
    expectTypeOf(kept).toEqualTypeOf<{ text: string; level: number }>();
    expect(kept).toEqual({ text: 'hello', level: 3 });
    // @ts-expect-error: the client still has to send what the validator asks for
    expect((await client.messages.$post({ json: { other: 1 } }, { headers: headers() })).status).not.toBe(200);
    expect(await (await client.open.$get()).json()).toEqual({ known: false });
  });
});

describe('fastify', () => {
  const create = () => fastify().setValidatorCompiler(TypeBoxValidatorCompiler).withTypeProvider<TypeBoxTypeProvider>();
  const schema = { body: Type.Object({ text: Type.String() }) };
  const post = { method: 'POST', url: '/messages', headers: { ...headers(), ...asJson }, body: message } as const;

  it('authorize: bodies by TypeBox have their types', async () => {
    const app = create();
    const authorize = inFastify.createAuthorize(server);
    app.post('/messages', { schema, onRequest: authorize(leveled) }, async (request) => {
      expectTypeOf(request.body).toEqualTypeOf<{ text: string }>();
      const { claims } = authorize.accessOf(request, leveled);
      expectTypeOf(claims).toEqualTypeOf<{ sub: string; level: number }>();
      expectTypeOf(authorize.accessOf(request)).toEqualTypeOf<Access>();
      return { text: request.body.text, level: claims.level };
    });
    app.get<{ Params: { id: string } }>('/messages/:id', { preHandler: authorize(policy) }, async (request) => {
      expectTypeOf(request.params.id).toEqualTypeOf<string>();
      return request.params.id;
    });
    expect((await app.inject(post)).json()).toEqual({ text: 'hello', level: 3 });
    expect((await app.inject({ url: '/messages/7', headers: headers() })).body).toBe('7');
  });
});

describe('fastify, all forms of a route', () => {
  const authorize = inFastify.createAuthorize(server);
  const created = Type.Object({ id: Type.String() });
  const schema = { body: Type.Object({ text: Type.String() }), response: { 200: created } };
  const other = async (_request: FastifyRequest): Promise<void> => undefined;
  interface Route {
    Params: { id: string };
    Body: { text: string };
    Reply: { id: string } | { 404: string };
  }
  interface ByStatus {
    Reply: { 200: { id: string }; 404: { missing: string } };
  }
  const send = async (app: FastifyInstance, url: string): Promise<readonly [number, unknown]> => {
    const { statusCode, body } = await app.inject({
      method: 'POST',
      url,
      headers: { ...headers(), ...asJson },
      body: message,
    });
    return [statusCode, JSON.parse(body)];
  };

  it('authorize with a Reply generic: onRequest, preHandler, arrays, route() → compile and respond', async () => {
    const app = fastify();
    app.post<Route>('/a/:id', { onRequest: authorize(policy) }, async (request) => {
      expectTypeOf(request.params).toEqualTypeOf<{ id: string }>();
      return { id: request.params.id };
    });
    app.post<Route>('/b/:id', { preHandler: authorize(policy) }, async (request) => ({ id: request.body.text }));
    app.post<Route>('/c/:id', { onRequest: [authorize(policy), other] }, async (request) => ({
      id: request.params.id,
    }));
    app.post<Route>('/d/:id', { preHandler: [other, authorize.optional(policy)] }, (request, reply) => {
      reply.send({ id: request.params.id });
    });
    app.route<ByStatus>({
      method: 'POST',
      url: '/e',
      onRequest: authorize(policy),
      handler: async (_request, reply) => reply.code(200).send({ id: 'e' }),
    });
    // @ts-expect-error: the Reply generic has no number
    app.post<{ Reply: { id: string } }>('/f', { onRequest: authorize(policy) }, async () => 7);
    for (const [url, id] of Object.entries({ '/a/1': '1', '/b/1': 'hello', '/c/1': '1', '/d/1': '1', '/e': 'e' })) {
      expect(await send(app, url)).toEqual([200, { id }]);
    }
  });

  it('authorize with schema.response of TypeBox: the same forms', async () => {
    const app = fastify().setValidatorCompiler(TypeBoxValidatorCompiler).withTypeProvider<TypeBoxTypeProvider>();
    app.post('/a', { schema, onRequest: authorize(policy) }, async (request) => {
      expectTypeOf(request.body).toEqualTypeOf<{ text: string }>();
      return { id: request.body.text };
    });
    app.post('/b', { schema, preHandler: authorize(policy) }, async ({ body }) => ({ id: body.text }));
    app.post('/c', { schema, onRequest: [authorize(policy)] }, async ({ body }) => ({ id: body.text }));
    app.route({
      method: 'POST',
      url: '/d',
      schema,
      preHandler: [authorize(policy)],
      handler: async ({ body }, reply) => {
        expectTypeOf(body).toEqualTypeOf<{ text: string }>();
        return reply.send({ id: body.text });
      },
    });
    // @ts-expect-error: the schema requires a string
    app.post('/e', { schema, onRequest: authorize(policy) }, async () => ({ id: 7 }));
    for (const url of ['/a', '/b', '/c', '/d']) expect(await send(app as never, url)).toEqual([200, { id: 'hello' }]);
  });
});

describe('optional', () => {
  it('protect.optional → access may be undefined', () => {
    inNode.createProtect(server).optional(leveled, (_request, _response, access) => {
      expectTypeOf(access).toEqualTypeOf<Access<{ sub: string; level: number }> | undefined>();
    });
    const optional = inFetch.createProtect(server).optional(policy, (_request, access) => {
      expectTypeOf(access).toEqualTypeOf<Access | undefined>();
      return new Response();
    });
    expect(optional).toBeTypeOf('function');
  });

  it('decorators of Nest: a policy compiles, a misspelled one does not', () => {
    expectTypeOf(inNest.Protect).toBeCallableWith({ scopes: ['read'] });
    expectTypeOf(inNest.Protect.optional).toBeCallableWith(leveled);
    // @ts-expect-error: not spelled so
    expect(() => inNest.Protect({ scope: ['read'] })).toThrow(TypeError);
    expectTypeOf<ReturnType<typeof inNest.CurrentAccess>>().toEqualTypeOf<ParameterDecorator>();
    expectTypeOf(inNest.Scopes).toBeCallableWith('read', 'write');
    // @ts-expect-error: no scope would require nothing
    expect(() => inNest.Scopes()).toThrow(TypeError);
  });

  it('the module of Nest: a server and its options compile, a misspelled option does not', () => {
    const { forRoot, forRootAsync } = inNest.PortcullisModule;
    expectTypeOf(forRoot).toBeCallableWith({ resourceServer: server, defaultPolicy: leveled, realm: () => 'tenant' });
    expectTypeOf(forRootAsync).toBeCallableWith({
      inject: [Date],
      useFactory: async (now: Date) => ({ resourceServer: server, realm: () => String(now) }),
    });
    // @ts-expect-error: not spelled so
    expect(forRoot({ resourceServer: server, policy: leveled })).toBeTypeOf('object');
    // @ts-expect-error: without a server
    expect(forRootAsync({ useFactory: () => ({ defaultPolicy: leveled }) })).toBeTypeOf('object');
    expectTypeOf(new inNest.PortcullisGuard({ resourceServer: server })).toExtend<CanActivate>();
  });
});

it('express: authorize: parameters have the types of the path', () => {
  const authorize = inExpress.createAuthorize(server);
  express()
    .get('/messages/:id', authorize(policy), (req, res) => {
      expectTypeOf(req.params).toEqualTypeOf<{ id: string }>();
      expectTypeOf(authorize.accessOf(req)).toEqualTypeOf<Access>();
      // Any server of the application may have let it in.
      expectTypeOf(req.access).toEqualTypeOf<Access<RegisteredClaims> | undefined>();
      res.send(req.params.id.trim());
    })
    .get('/levels/:id', authorize(leveled), (req, res) => {
      expectTypeOf(authorize.accessOf(req, leveled).claims).toEqualTypeOf<{ sub: string; level: number }>();
      res.send(req.params.id.trim());
    });
});

describe('sub', () => {
  const optional = createResourceServer({ issuers: [issuer], audience: issuer.audience, subject: 'optional' });

  it('readers of each adapter: claims.sub has the type of the server', () => {
    const required = [inExpress.createAuthorize(server), inFastify.createAuthorize(server)] as const;
    const of = (request: Request & FastifyRequest) => required.map((authorize) => authorize.accessOf(request));
    expectTypeOf<ReturnType<typeof of>[number]>().toEqualTypeOf<Access>();
    const open = [inExpress.createAuthorize(optional), inFastify.createAuthorize(optional)] as const;
    const found = (request: Request & FastifyRequest) => open.map((authorize) => authorize.findAccess(request));
    expectTypeOf<NonNullable<ReturnType<typeof found>[number]>['claims']['sub']>().toEqualTypeOf<string | undefined>();
    const inContext = (c: Context) => inHono.createAuthorize(server).accessOf(c).claims.sub;
    expectTypeOf<ReturnType<typeof inContext>>().toEqualTypeOf<string>();
    // Any server of the application may have admitted the request of a Nest context.
    const ofNest = (context: ExecutionContext) => inNest.accessOf(context, policy);
    expectTypeOf<ReturnType<typeof ofNest>>().toEqualTypeOf<Access<RegisteredClaims>>();
    expect([of, found, inContext, ofNest]).toHaveLength(4);
  });
});
