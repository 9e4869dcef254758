import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, { type ErrorRequestHandler, type Request as ExpressRequest, type RequestHandler } from 'express';
import fastify, { type FastifyRequest, type onRequestHookHandler } from 'fastify';
import { Hono, type MiddlewareHandler } from 'hono';
import { describe, expect, it, test } from 'vitest';
import { z } from 'zod';
import {
  createAuthorize as createExpressAuthorize,
  createProtect as createExpressProtect,
} from '../../src/adapters/express.ts';
import {
  createAuthorize as createFastifyAuthorize,
  createProtect as createFastifyProtect,
} from '../../src/adapters/fastify.ts';
import {
  createAuthorize as createFetchAuthorize,
  createProtect as createFetchProtect,
} from '../../src/adapters/fetch.ts';
import { createAuthorize as createHonoAuthorize, createProtect as createHonoProtect } from '../../src/adapters/hono.ts';
import { createGuard, Protect } from '../../src/adapters/nest.ts';
import { createProtect as createNodeProtect } from '../../src/adapters/node.ts';
import type { Access } from '../../src/resource-server/resource-server.ts';
import { client, issuer } from './issuer.ts';
import { createServers, nonces, now, policy } from './scene.ts';

const server = createServers(issuer).usual;

/** As programs without types call it. */
type Loose = (...args: readonly unknown[]) => unknown;
const loose = (call: unknown): Loose => call as Loose;

describe.each([
  ['node', createNodeProtect],
  ['express', createExpressProtect],
  ['fastify', createFastifyProtect],
  ['fetch', createFetchProtect],
  ['hono', createHonoProtect],
])('%s, from a program without types', (_name, createProtect) => {
  const protect = loose(createProtect)(server);

  const handler = (): void => undefined;
  it.each<readonly [string, readonly unknown[]]>([
    ['a handler in the place of a policy', [handler]],
    ['a misspelt policy', [{ scope: ['read:messages'] }, handler]],
    ['no handler', [{}]],
    ['undefined for a policy', [undefined, handler]],
    ['null for a policy', [null, handler]],
  ])('%s → TypeError where the route is made', (_case, args) => {
    expect(() => loose(protect)(...args)).toThrow(TypeError);
    expect(() => loose(protect)(...args)).toThrow(/^(?:policy|protect): /);
  });

  it.each([undefined, null, {}, { authorize() {} }])('%j for a resource server → TypeError', (wrong) => {
    expect(() => loose(createProtect)(wrong)).toThrow(/^createProtect: hand over what createResourceServer returned$/);
  });
});

describe('nest, from untyped code', () => {
  it('no policy → TypeError where the route is declared', () => {
    expect(() => loose(Protect)()).toThrow(/^policy: write an object/);
  });

  it('no resource server → TypeError', () => {
    expect(() => loose(createGuard)()).toThrow(/^createGuard: hand over/);
  });
});

test('a handler that takes access, without a policy → does not compile', () => {
  const mount = () => {
    // @ts-expect-error
    express().get('/', (_req, res, access: Access) => res.json(access));
    // @ts-expect-error
    fastify().get('/', (_request, _reply, access: Access) => access);
    // @ts-expect-error
    new Hono().get('/', (c, access: Access) => c.json(access.claims));
    // @ts-expect-error
    createServer((_request, response, access: Access) => response.end(access.scheme));
  };
  expect(mount).toBeTypeOf('function'); // it is there to be compiled
});

test('parameters of the path → the types of the framework', () => {
  const mount = () => {
    const inExpress = createExpressProtect(server);
    express().get(
      '/messages/:id',
      inExpress(policy, (req: ExpressRequest<{ id: string }>, res) => res.send(req.params.id.trim())),
    );
    const inFastify = createFastifyProtect(server);
    fastify().get(
      '/messages/:id',
      inFastify(policy, async (request: FastifyRequest<{ Params: { id: string } }>) => request.params.id.trim()),
    );
  };
  expect(mount).not.toThrow();
});

test("schema of a policy → type of the handler's claims", () => {
  const schema = z.object({ sub: z.string(), level: z.number() });
  const levels = {
    node: createNodeProtect(server)({ claims: schema }, (_request, response, { claims }) =>
      response.end(claims.level.toFixed()),
    ),
    express: createExpressProtect(server)({ claims: schema }, (_req, res, { claims }) =>
      res.send(claims.level.toFixed()),
    ),
    fastify: createFastifyProtect(server)({ claims: schema }, async (_request, _reply, { claims }) =>
      claims.level.toFixed(),
    ),
    fetch: createFetchProtect(server)(
      { claims: schema },
      (_request, { claims }) => new Response(claims.level.toFixed()),
    ),
    hono: createHonoProtect(server)({ claims: schema }, (c, { claims }) => c.text(claims.level.toFixed())),
  };
  expect(Object.keys(levels)).toHaveLength(5);
});

describe('fetch', () => {
  const url = 'https://api.example/messages';
  const bearer = () => new Request(url, { headers: issuer.headers({ scope: 'read:messages' }) });

  it('handler returns a response, no token → promises of the response and of 401', async () => {
    const handler = createFetchProtect(server)(policy, (_request, access) => Response.json(access.claims));
    expect(await handler(bearer())).toBeInstanceOf(Response);
    expect(await handler(new Request(url))).toMatchObject({ status: 401 });
  });

  it('environment and context of the runtime → passed to the handler', async () => {
    const protect = createFetchProtect(server);
    const handler = protect(policy, (_request, _access, env: { name: string }, context: number) =>
      Response.json([env.name, context]),
    );
    expect(await (await handler(bearer(), { name: 'of the worker' }, 1)).json()).toEqual(['of the worker', 1]);
  });

  it('no connection → the scheme of the URL', async () => {
    const handler = createFetchProtect(server)(policy, () => new Response());
    const headers = client.headers({ url, scope: 'read:messages' });
    expect((await handler(new Request(url, { headers }))).status).toBe(200);
  });

  it.each(['at once', 'later'])(
    'a response from elsewhere, %s, whose headers are immutable, gets the nonce',
    async (when) => {
      const answer = Response.redirect('https://api.example/other', 302);
      expect(() => answer.headers.set('dpop-nonce', 'x')).toThrow(TypeError);
      const handler = createFetchProtect(createServers(issuer).withNonces)(policy, () =>
        when === 'at once' ? answer : Promise.resolve(answer),
      );
      const headers = client.headers({ url, scope: 'read:messages', nonce: nonces.issue(now() - 120) });
      const response = await handler(new Request(url, { headers }));
      expect(response.status).toBe(302);
      expect(response.headers.get('location')).toBe('https://api.example/other');
      expect(response.headers.get('dpop-nonce')).toBe(nonces.issue(now()));
    },
  );
});

describe('fastify', () => {
  const headers = () => issuer.headers({ scope: 'read:messages' });
  const text = { 'content-type': 'application/json' };

  it('no token and a malformed body → 401, not 400', async () => {
    const app = fastify();
    const protect = createFastifyProtect(server);
    const schema = { body: { type: 'object', required: ['text'] } };
    app.post('/messages', { schema, ...protect(policy, async () => 'sent') });
    const send = (more: object) =>
      app.inject({ method: 'POST', url: '/messages', headers: { ...text, ...more }, body: '{' });
    expect((await send({})).statusCode).toBe(401);
    expect((await send(headers())).statusCode).toBe(400);
  });

  it('a route that has lost its hook → 500', async () => {
    const app = fastify();
    const { handler } = createFastifyProtect(server)(policy, async () => 'let in');
    app.get('/messages', { handler });
    const answer = await app.inject({ url: '/messages', headers: headers() });
    expect(answer.statusCode).toBe(500);
    expect(answer.json().message).toMatch(/^protect: the route has lost its onRequest hook/);
  });

  it('a rewritten URL → proofs are for the requested URL', async () => {
    const app = fastify({ rewriteUrl: () => '/inside' });
    app.get(
      '/inside',
      createFastifyProtect(server)(policy, async () => 'let in'),
    );
    const proof = (path: string) => client.headers({ url: `http://localhost:80${path}`, scope: 'read:messages' });
    expect((await app.inject({ url: '/outside', headers: proof('/outside') })).body).toBe('let in');
    expect((await app.inject({ url: '/outside', headers: proof('/inside') })).statusCode).toBe(401);
  });

  it('this of the handler → the application', async () => {
    const app = fastify();
    app.get(
      '/messages',
      createFastifyProtect(server)(policy, async function () {
        return this === app;
      }),
    );
    expect((await app.inject({ url: '/messages', headers: headers() })).json()).toBe(true);
  });
});

describe('express', () => {
  it('next in a handler → the next route; headers of middleware are on refusals', async () => {
    const app = express();
    const protect = createExpressProtect(server);
    app.use((_req, res, next) => {
      res.set('access-control-allow-origin', '*');
      next();
    });
    app.get(
      '/messages',
      protect(policy, (_req, _res, _access, next) => next()),
    );
    app.get('/messages', (_req, res) => {
      res.send('the next one');
    });
    const listening = app.listen(0, '127.0.0.1');
    try {
      await new Promise((resolve) => listening.once('listening', resolve));
      const address = listening.address();
      const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/messages`;
      const good = await fetch(url, { headers: issuer.headers({ scope: 'read:messages' }) });
      expect(await good.text()).toBe('the next one');
      const refused = await fetch(url);
      expect(refused.status).toBe(401);
      expect(refused.headers.get('access-control-allow-origin')).toBe('*');
    } finally {
      listening.close();
    }
  });
});

describe.each([
  ['authorize', /^authorize: call it to make the middleware: authorize\(\), or /],
  ['protect', /^protect: it was mounted as a handler; write protect\(policy, handler\)/],
] as const)('%s mounted without being called', (form, fix) => {
  const mount = <F>(forms: Readonly<Record<typeof form, unknown>>) => forms[form] as F; // as untyped code does

  it('Express → the route fails, and the message states the fix', async () => {
    const messages: unknown[] = [];
    const app = express();
    app.use(
      mount<RequestHandler>({ authorize: createExpressAuthorize(server), protect: createExpressProtect(server) }),
    );
    app.get('/', (_req, res) => res.send('admitted'));
    app.use(((error, _req, res, _next) => {
      messages.push(error.message);
      res.sendStatus(500);
    }) satisfies ErrorRequestHandler);
    const listening = createServer(app);
    await once(listening.listen(0, '127.0.0.1'), 'listening');
    const { port } = listening.address() as AddressInfo; // it listens on TCP
    const { status } = await fetch(`http://127.0.0.1:${port}/`, { headers: issuer.headers() });
    listening.close();
    expect([status, messages]).toEqual([500, [expect.stringMatching(fix)]]);
  });

  it('Hono → the same', async () => {
    const messages: string[] = [];
    const app = new Hono();
    app.use(mount<MiddlewareHandler>({ authorize: createHonoAuthorize(server), protect: createHonoProtect(server) }));
    app.get('/', (c) => c.text('admitted'));
    app.onError((error, c) => {
      messages.push(error.message);
      return c.text('failed', 500);
    });
    expect((await app.request('/', { headers: issuer.headers() })).status).toBe(500);
    expect(messages).toEqual([expect.stringMatching(fix)]);
  });

  it('Fastify → the same', async () => {
    const app = fastify();
    const onRequest = mount<onRequestHookHandler>({
      authorize: createFastifyAuthorize(server),
      protect: createFastifyProtect(server),
    });
    app.get('/', { onRequest }, async () => 'admitted');
    const response = await app.inject({ url: '/', headers: issuer.headers() });
    expect([response.statusCode, response.json().message]).toEqual([500, expect.stringMatching(fix)]);
  });

  it('fetch → the same', () => {
    const forms = { authorize: createFetchAuthorize(server), protect: createFetchProtect(server) };
    expect(() => mount<(request: Request) => unknown>(forms)(new Request('https://api.test/'))).toThrow(fix);
  });
});
