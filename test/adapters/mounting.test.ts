import { createServer, type IncomingMessage } from 'node:http';
import express, { type ErrorRequestHandler, type RequestHandler } from 'express';
import fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type onRequestHookHandler,
} from 'fastify';
import { Hono, type MiddlewareHandler } from 'hono';
import { some } from 'hono/combine';
import { describe, expect, it, test } from 'vitest';
import { z } from 'zod';
import { createAuthorize as createExpressAuthorize } from '../../src/adapters/express.ts';
import { createAuthorize as createFastifyAuthorize } from '../../src/adapters/fastify.ts';
import { createProtect as createFetchProtect } from '../../src/adapters/fetch.ts';
import { createAuthorize as createHonoAuthorize } from '../../src/adapters/hono.ts';
import { createGuard, Protect } from '../../src/adapters/nest.ts';
import { createProtect as createNodeProtect } from '../../src/adapters/node.ts';
import type { Access } from '../../src/core/resource-server/resource-server.ts';
import { listen } from '../support/listening.ts';
import { client, issuer } from './issuer.ts';
import { createServers, nonces, now, policy } from './scene.ts';

const server = createServers(issuer).usual;

/** As programs without types call it. */
type Loose = (...args: readonly unknown[]) => unknown;
const loose = (call: unknown): Loose => call as Loose;

describe.each([
  ['node', createNodeProtect],
  ['fetch', createFetchProtect],
])('%s, from a program without types', (_name, createProtect) => {
  const protect = loose(createProtect)(server);

  const handler = (): void => undefined;
  it.each<readonly [string, readonly unknown[]]>([
    ['a handler instead of a policy', [handler]],
    ['a misspelled policy', [{ scope: ['read:messages'] }, handler]],
    ['no handler', [{}]],
    ['undefined for a policy', [undefined, handler]],
    ['null for a policy', [null, handler]],
    ['a second policy', [{}, handler, { scopes: ['a'] }]],
  ])('%s → TypeError at creation of the route', (_case, args) => {
    expect(() => loose(protect)(...args)).toThrow(TypeError);
    expect(() => loose(protect)(...args)).toThrow(/^(?:policy|protect): /);
  });
});

describe.each([
  ['express', createExpressAuthorize],
  ['fastify', createFastifyAuthorize],
  ['hono', createHonoAuthorize],
])('%s, from a program without types', (_name, createAuthorize) => {
  const authorize = loose(createAuthorize)(server);

  it.each<readonly [string, unknown]>([
    ['a handler', (): void => undefined],
    ['a misspelled policy', { scope: ['read:messages'] }],
    ['null', null],
    ['undefined', undefined],
  ])('%s as the policy → TypeError at creation of the route', (_case, policy) => {
    const { optional } = authorize as { readonly optional: unknown }; // it has one
    for (const form of [authorize, optional]) expect(() => loose(form)(policy)).toThrow(/^policy: /);
  });

  it.each([
    ['a second policy', { scopes: ['b'] }],
    ['a handler', (): void => undefined],
  ])('%s after the policy → TypeError at creation of the route', (_case, second) => {
    expect(() => loose(authorize)({ scopes: ['a'] }, second)).toThrow(/^authorize: write one policy; .*allOf/);
    expect([{ scopes: ['a'] }].map(loose(authorize))).toEqual([expect.any(Function)]);
  });
});

it.each([
  ['createProtect', createNodeProtect],
  ['createProtect', createFetchProtect],
  ['createAuthorize', createExpressAuthorize],
  ['createAuthorize', createFastifyAuthorize],
  ['createAuthorize', createHonoAuthorize],
])('%s with anything but a resource server → TypeError', (name, create) => {
  for (const wrong of [undefined, null, {}, { authorize() {} }]) {
    expect(() => loose(create)(wrong)).toThrow(new TypeError(`${name}: hand over what createResourceServer returned`));
  }
});

describe('fastify, authorize() as a hook that does not protect the handler', () => {
  const open = (hook: string): FastifyInstance => {
    const app = fastify({ logger: { level: 'error', stream: { write: (line) => void lines.push(line) } } });
    return app.get('/', { [hook]: createFastifyAuthorize(server)() }, async () => ({ hello: 'world' }));
  };
  const lines: string[] = [];
  const mistake = 'authorize: use it as onRequest, preValidation or preHandler';

  it.each(['preParsing', 'preSerialization', 'onSend'])('%s → 500 for each request', async (hook) => {
    const app = open(hook);
    for (const headers of [{}, issuer.headers()]) {
      const response = await app.inject({ url: '/', headers });
      expect([response.statusCode, response.json().message]).toEqual([500, expect.stringContaining(mistake)]);
    }
    await app.close();
  });

  it('onResponse → an error in the log', async () => {
    const app = open('onResponse');
    await app.inject('/');
    await app.close();
    expect(lines.at(-1)).toContain(mistake);
  });
});

describe('nest, from untyped code', () => {
  it('no policy → TypeError where the route is declared', () =>
    expect(() => loose(Protect)()).toThrow(/^policy: write an object/));

  it('two policies → TypeError', () =>
    expect(() => loose(Protect)({}, { scopes: ['a'] })).toThrow(/^Protect: write one policy/));

  it('no resource server → TypeError', () => expect(() => loose(createGuard)()).toThrow(/^createGuard: hand over/));
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

test("schema of a policy → type of the handler's claims", () => {
  const schema = z.object({ sub: z.string(), level: z.number() });
  const node = createNodeProtect(server)({ claims: schema }, (_request, response, { claims }) =>
    response.end(claims.level.toFixed()),
  );
  const fetched = createFetchProtect(server)(
    { claims: schema },
    (_request, { claims }) => new Response(claims.level.toFixed()),
  );
  expect([node, fetched]).toHaveLength(2);
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

describe('fetch, a response that cannot be copied → returned without a nonce', () => {
  it.each([
    ['a network error, as every status below 200', Response.error()],
    ['none, as after an upgrade of Bun', undefined as unknown as Response], // as its handlers return
  ])('%s', async (_name, answer) => {
    const handler = createFetchProtect(createServers(issuer).withNonces)(policy, () => answer);
    const url = 'https://api.example/messages';
    const headers = client.headers({ url, scope: 'read:messages', nonce: nonces.issue(now() - 120) });
    expect(await handler(new Request(url, { headers }))).toBe(answer);
  });
});

describe('fastify', () => {
  const headers = () => issuer.headers({ scope: 'read:messages' });
  const text = { 'content-type': 'application/json' };

  it('no token and a malformed body → 401, not 400', async () => {
    const app = fastify();
    const authorize = createFastifyAuthorize(server);
    const schema = { body: { type: 'object', required: ['text'] } };
    app.post('/messages', { schema, onRequest: authorize(policy) }, async () => 'sent');
    const send = (more: object) =>
      app.inject({ method: 'POST', url: '/messages', headers: { ...text, ...more }, body: '{' });
    expect((await send({})).statusCode).toBe(401);
    expect((await send(headers())).statusCode).toBe(400);
  });

  it('a rewritten URL → proofs are for the requested URL', async () => {
    const app = fastify({ rewriteUrl: () => '/inside' });
    app.get('/inside', { onRequest: createFastifyAuthorize(server)(policy) }, async () => 'let in');
    const proof = (path: string) => client.headers({ url: `http://localhost:80${path}`, scope: 'read:messages' });
    expect((await app.inject({ url: '/outside', headers: proof('/outside') })).body).toBe('let in');
    expect((await app.inject({ url: '/outside', headers: proof('/inside') })).statusCode).toBe(401);
  });

  describe.each([
    ['a hook', true],
    ['a handler', false],
  ])('awaited in %s that is an async function', (_where, isHook) => {
    const authorize = createFastifyAuthorize(server);
    const mount = (authorizeRoute: ReturnType<typeof authorize>) => {
      const ran: string[] = [];
      const app = fastify();
      app.addHook('onSend', async () => undefined); // a response that is not sent at once
      const admit = async (request: FastifyRequest, reply: FastifyReply) => {
        await authorizeRoute(request, reply);
        ran.push('after');
      };
      if (isHook) app.addHook('onRequest', admit);
      app.get('/', async (request, reply) => {
        if (!isHook) await admit(request, reply);
        return authorize.accessOf(request).claims.sub;
      });
      return { app, ran };
    };

    it('no token → the refusal, and nothing after it runs; a valid token → admitted', async () => {
      const { app, ran } = mount(authorize(policy));
      const refused = await app.inject({ url: '/' });
      expect([refused.statusCode, refused.headers['www-authenticate'], ran]).toEqual([
        401,
        expect.stringMatching(/^Bearer /),
        [],
      ]);
      const { statusCode, body } = await app.inject({ url: '/', headers: headers() });
      expect([statusCode, body, ran]).toEqual([200, 'test-subject', ['after']]);
      await app.close();
    });
  });
});

it.each<readonly [string, (request: IncomingMessage, token: string) => void, number]>([
  ['a line added to rawHeaders', (request, token) => request.rawHeaders.push('authorization', token), 200],
  ['a second line', ({ rawHeaders }, token) => rawHeaders.push('authorization', token, 'Authorization', token), 400],
  ['req.headers changed', ({ headers }, authorization) => Object.assign(headers, { authorization }), 401],
])('express, a token that middleware takes from elsewhere: %s → %3$i', async (_case, add, status) => {
  const app = express();
  app.use((req, _res, next) => {
    add(req, `Bearer ${issuer.token({ scope: 'read:messages' })}`);
    next();
  });
  app.get('/', createExpressAuthorize(server)(policy), (_req, res) => res.send('admitted'));
  const { origin, close } = await listen(createServer(app));
  const response = await fetch(origin);
  await close();
  expect(response.status).toBe(status);
});

it("hono: some(another, authorize()) → either admits, and the refusal is authorize's", async () => {
  const another: MiddlewareHandler = async (c, next) => {
    if (c.req.header('x-key') !== 'secret') throw new Error('no key');
    await next();
  };
  const app = new Hono().use(some(another, createHonoAuthorize(server)(policy))).get('/', (c) => c.text('admitted'));
  const send = async (headers: Record<string, string>) => (await app.request('/', { headers })).status;
  const valid = issuer.headers({ scope: 'read:messages' });
  expect([await send({ 'x-key': 'secret' }), await send({ ...valid }), await send({})]).toEqual([200, 200, 401]);
});

it('express: middleware without next → TypeError that states the fix', () => {
  const call = loose(createExpressAuthorize(server)(policy));
  expect(() => call({}, {})).toThrow(/^authorize: pass next, as in /);
});

it('express: next in a handler → the next route; headers of middleware are on refusals', async () => {
  const app = express();
  const authorize = createExpressAuthorize(server);
  app.use((_req, res, next) => {
    res.set('access-control-allow-origin', '*');
    next();
  });
  app.get('/messages', authorize(policy), (_req, _res, next) => next());
  app.get('/messages', (_req, res) => {
    res.send('the next one');
  });
  const { origin, close } = await listen(createServer(app));
  try {
    const url = `${origin}/messages`;
    const good = await fetch(url, { headers: issuer.headers({ scope: 'read:messages' }) });
    expect(await good.text()).toBe('the next one');
    const refused = await fetch(url);
    expect(refused.status).toBe(401);
    expect(refused.headers.get('access-control-allow-origin')).toBe('*');
  } finally {
    await close();
  }
});

describe('authorize mounted without being called', () => {
  const fix = /^authorize: call it to make the middleware: authorize\(\), or /;

  it('Express → the route fails, and the message states the fix', async () => {
    const messages: unknown[] = [];
    const app = express();
    app.use(createExpressAuthorize(server) as unknown as RequestHandler); // as untyped code does
    app.get('/', (_req, res) => res.send('admitted'));
    app.use(((error, _req, res, _next) => {
      messages.push(error.message);
      res.sendStatus(500);
    }) satisfies ErrorRequestHandler);
    const { origin, close } = await listen(createServer(app));
    const { status } = await fetch(origin, { headers: issuer.headers() });
    await close();
    expect([status, messages]).toEqual([500, [expect.stringMatching(fix)]]);
  });

  it('Hono → the same', async () => {
    const messages: string[] = [];
    const app = new Hono();
    app.use(createHonoAuthorize(server) as unknown as MiddlewareHandler); // as untyped code does
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
    const onRequest = createFastifyAuthorize(server) as unknown as onRequestHookHandler; // as untyped code does
    app.get('/', { onRequest }, async () => 'admitted');
    const response = await app.inject({ url: '/', headers: issuer.headers() });
    expect([response.statusCode, response.json().message]).toEqual([500, expect.stringMatching(fix)]);
  });

  it('protect of fetch → TypeError that states the fix', () => {
    const protect = createFetchProtect(server) as unknown as (request: Request) => unknown; // as untyped code does
    expect(() => protect(new Request('https://api.test/'))).toThrow(
      /^protect: it was mounted as a handler; write protect\(policy, handler\)/,
    );
  });
});
