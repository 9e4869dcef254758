import type { IncomingMessage } from 'node:http';
import { type TypeBoxTypeProvider, TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import express, { type Request } from 'express';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { type Context, type Env, Hono } from 'hono';
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
import type { Access } from '../../src/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../src/token/claims.ts';
import { issuer } from './issuer.ts';
import { createServers, policy } from './scene.ts';

const server = createServers(issuer).usual;
const headers = () => issuer.headers({ sub: 'alice', scope: 'read:messages', level: 3 });
const leveled = { ...policy, claims: z.object({ sub: z.string(), level: z.number() }) };
const json = validator('json', (value: unknown) => z.object({ text: z.string() }).parse(value));
const message = JSON.stringify({ text: 'hello' });
const asJson = { 'content-type': 'application/json' };

interface Sent {
  in: { json: { text: string } };
  out: { json: { text: string } };
}

describe('hono', () => {
  const authorize = inHono.createAuthorize(server);
  const protect = inHono.createProtect(server);

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

  it('protect: the results of hc; parameters and validated bodies from the annotation of c', async () => {
    const app = new Hono()
      .get(
        '/messages/:id',
        protect(policy, (c, access) => {
          // As in every handler of Hono that stands apart from its route.
          expectTypeOf(c.req.param('id')).toEqualTypeOf<string | undefined>();
          return c.json({ id: c.req.param('id') ?? '', scheme: access.scheme });
        }),
      )
      .post(
        '/messages',
        json,
        protect(leveled, (c: Context<Env, '/messages', Sent>, { claims }) => {
          expectTypeOf(c.req.valid('json')).toEqualTypeOf<{ text: string }>();
          expectTypeOf(claims).toEqualTypeOf<{ sub: string; level: number }>();
          return c.json({ text: c.req.valid('json').text });
        }),
      )
      .post(
        '/other',
        json,
        protect(policy, (c) => {
          // As Hono types a validated body that it knows nothing of.
          expectTypeOf(c.req.valid('json')).toBeAny();
          return c.json({ sent: true });
        }),
      );
    const client = hc<typeof app>('http://api.test', { fetch: app.request });
    const read = await client.messages[':id'].$get({ param: { id: '7' } }, { headers: headers() });
    const answer = await read.json();
    expectTypeOf(answer).toEqualTypeOf<{ id: string; scheme: 'Bearer' | 'DPoP' }>();
    expect(answer).toEqual({ id: '7', scheme: 'Bearer' });
    const sent = await client.messages.$post({ json: { text: 'hello' } }, { headers: headers() });
    const kept = await sent.json();
    expectTypeOf(kept).toEqualTypeOf<{ text: string }>();
    expect(kept).toEqual({ text: 'hello' });
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
      const { claims } = inFastify.accessOf(request, leveled);
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

describe('fastify, protect', () => {
  it('annotated request → parameters and bodies have its types', async () => {
    const app = fastify();
    const protect = inFastify.createProtect(server);
    interface Route {
      Params: { id: string };
      Body: { text: string };
    }
    app.post<Route>(
      '/messages/:id',
      protect(leveled, async (request: FastifyRequest<Route>, _reply, { claims }) => {
        expectTypeOf(request.params.id).toEqualTypeOf<string>();
        expectTypeOf(request.body.text).toEqualTypeOf<string>();
        expectTypeOf(claims).toEqualTypeOf<{ sub: string; level: number }>();
        return `${request.params.id} ${request.body.text} ${claims.level}`;
      }),
    );
    app.get(
      '/open',
      protect.optional(policy, async (_request, _reply, access) => {
        expectTypeOf(access).toEqualTypeOf<Access | undefined>();
        return { known: access !== undefined };
      }),
    );
    const asked = { method: 'POST', url: '/messages/7', headers: { ...headers(), ...asJson }, body: message } as const;
    expect((await app.inject(asked)).body).toBe('7 hello 3');
    expect((await app.inject('/open')).json()).toEqual({ known: false });
  });
});

describe('fastify, all forms of a route', () => {
  const authorize = inFastify.createAuthorize(server);
  const protect = inFastify.createProtect(server);
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

  it('protect with a Reply generic, alone, spread and in route() → compiles, and the payload is checked', async () => {
    const app = fastify();
    app.post<Route>(
      '/a/:id',
      protect(policy, async (request: FastifyRequest<Route>, reply) => {
        expectTypeOf(request.params).toEqualTypeOf<{ id: string }>();
        expectTypeOf(reply).toEqualTypeOf<FastifyReply<Route>>();
        return { id: request.params.id };
      }),
    );
    app.post<Route>('/b/:id', {
      bodyLimit: 1024,
      ...protect(policy, async (request: FastifyRequest<Route>, _reply, { scheme }) => ({
        id: `${request.body.text} ${scheme}`,
      })),
    });
    app.route<ByStatus>({
      method: 'POST',
      url: '/c',
      ...protect(policy, async (_request: FastifyRequest<ByStatus>, reply) => reply.code(404).send({ missing: 'c' })),
    });
    app.post<{ Reply: { id: string } }>('/d', {
      ...protect.optional(policy, async (_request, _reply, access) => ({ id: access?.scheme ?? 'none' })),
    });
    const wrong = protect(policy, async () => ({ id: 7 }));
    // @ts-expect-error: the Reply generic requires a string
    app.post<{ Reply: { id: string } }>('/e', wrong);
    expect(await send(app, '/a/1')).toEqual([200, { id: '1' }]);
    expect(await send(app, '/b/1')).toEqual([200, { id: 'hello Bearer' }]);
    expect(await send(app, '/c')).toEqual([404, { missing: 'c' }]);
    expect(await send(app, '/d')).toEqual([200, { id: 'Bearer' }]);
  });

  it('protect with schema.response of TypeBox → compiles, and the payload is checked', async () => {
    const app = fastify().setValidatorCompiler(TypeBoxValidatorCompiler).withTypeProvider<TypeBoxTypeProvider>();
    type Body = FastifyRequest<{ Body: { text: string } }>;
    app.post('/a', { schema, ...protect(policy, async (request: Body) => ({ id: request.body.text })) });
    app.post('/b', {
      schema,
      ...protect(policy, async (request: Body, reply) => reply.send({ id: request.body.text })),
    });
    app.route({ method: 'POST', url: '/c', schema, ...protect(policy, async ({ body }: Body) => ({ id: body.text })) });
    app.post('/d', { schema, ...protect(policy, async (_request, _reply, { scheme }) => ({ id: scheme })) });
    // @ts-expect-error: the schema requires a string
    app.post('/e', { schema, ...protect(policy, async () => ({ id: 7 })) });
    for (const [url, id] of Object.entries({ '/a': 'hello', '/b': 'hello', '/c': 'hello', '/d': 'Bearer' })) {
      expect(await send(app as never, url)).toEqual([200, { id }]);
    }
  });
});

describe('optional', () => {
  it('protect.optional → access may be undefined, in every adapter', () => {
    inExpress.createProtect(server).optional(policy, (_req, _res, access) => {
      expectTypeOf(access).toEqualTypeOf<Access | undefined>();
    });
    inNode.createProtect(server).optional(leveled, (_request, _response, access) => {
      expectTypeOf(access).toEqualTypeOf<Access<{ sub: string; level: number }> | undefined>();
    });
    inFetch.createProtect(server).optional(policy, (_request, access) => {
      expectTypeOf(access).toEqualTypeOf<Access | undefined>();
      return new Response();
    });
    const optional = inHono.createProtect(server).optional(policy, (c, access) => {
      expectTypeOf(access).toEqualTypeOf<Access | undefined>();
      return c.body(null);
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

describe('express', () => {
  it('authorize: parameters have the types of the path', () => {
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
        expectTypeOf(inExpress.accessOf(req, leveled).claims).toEqualTypeOf<{ sub: string; level: number }>();
        res.send(req.params.id.trim());
      });
  });

  it('protect: annotated request → parameters have its types', () => {
    const protect = inExpress.createProtect(server);
    express().get(
      '/messages/:id',
      protect(policy, (req: Request<{ id: string }>, res) => res.send(req.params.id.trim())),
    );
  });
});

describe('sub', () => {
  it('accessOf and findAccess of every adapter: claims.sub may be undefined', () => {
    // With a policy that has no schema as well: it demands nothing of `sub`.
    const readers = [
      (request: Request) => [inExpress.accessOf(request), inExpress.accessOf(request, policy)] as const,
      (request: FastifyRequest) => [inFastify.accessOf(request), inFastify.accessOf(request, policy)] as const,
      (request: globalThis.Request) => [inFetch.accessOf(request), inFetch.accessOf(request, policy)] as const,
      (c: Context) => [inHono.accessOf(c), inHono.accessOf(c, policy)] as const,
      (context: ExecutionContext) => [inNest.accessOf(context), inNest.accessOf(context, policy)] as const,
      (request: IncomingMessage) => [inNode.accessOf(request), inNode.accessOf(request, policy)] as const,
    ];
    type Known = Access<RegisteredClaims>;
    expectTypeOf<ReturnType<(typeof readers)[number]>>().toEqualTypeOf<readonly [Known, Known]>();
    const finders = [
      (request: Request) => inExpress.findAccess(request),
      (request: FastifyRequest) => inFastify.findAccess(request),
      (request: globalThis.Request) => inFetch.findAccess(request),
      (c: Context) => inHono.findAccess(c),
      (context: ExecutionContext) => inNest.findAccess(context),
      (request: IncomingMessage) => inNode.findAccess(request),
    ];
    expectTypeOf<ReturnType<(typeof finders)[number]>>().toEqualTypeOf<Known | undefined>();
    expect(readers).toHaveLength(finders.length);
  });
});
