import { createServer, type RequestListener } from 'node:http';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import * as inExpress from '../../../src/adapters/express.ts';
import * as inFastify from '../../../src/adapters/fastify.ts';
import * as inFetch from '../../../src/adapters/fetch.ts';
import * as inHono from '../../../src/adapters/hono.ts';
import * as inNode from '../../../src/adapters/node.ts';
import { AccessError } from '../../../src/core/failures.ts';
import type { ErrorBody, ErrorReport } from '../../../src/core/refusal/error-body.ts';
import type { Access, ResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import type { Claims, RegisteredClaims } from '../../../src/core/token/claims.ts';
import { listen } from '../../support/listening.ts';
import { issuer } from '../issuer.ts';
import { createServers, policy } from '../scene.ts';

/** An application on a socket. */
export interface Mounted {
  readonly origin: string;
  close(): Promise<void>;
}

export interface FormOptions {
  readonly onRefused?: (error: unknown) => unknown;
  readonly realm?: () => string;
  readonly errorBody?: (report: ErrorReport) => ErrorBody;
}

/** What a handler finds that it forbids by itself. */
const forbid = (): never => {
  throw new AccessError('insufficient_scope', { scopes: ['admin'] });
};
const reject = (): Promise<never> => Promise.reject(new AccessError('insufficient_scope', { scopes: ['admin'] }));
const show = (access: Access<RegisteredClaims> | undefined) => ({ reader: access?.claims.sub ?? null });
/** A server that is not the one of the reader. */
const otherServer = (server: ResourceServer): ResourceServer => {
  const other = createServers(issuer).usual;
  if (other === server) throw new TypeError('the same server');
  return other;
};
/** A policy that no route has. */
const otherPolicy = { scopes: ['read:messages'] };

const serve = (listener: RequestListener): Promise<Mounted> => listen(createServer(listener));

function mountExpress(server: ResourceServer, options: FormOptions): Promise<Mounted> {
  const authorize = inExpress.createAuthorize(server, options);
  const app = express();
  app.get('/open', authorize.optional(policy), (req, res) => res.json(show(authorize.findAccess(req))) && undefined);
  app.get('/forbids', authorize(policy), forbid);
  app.get('/rejects', authorize(policy), reject);
  app.get('/unjudged', (req, res) => {
    Object.assign(req, { access: { claims: { sub: 'forged' } } });
    res.json(show(authorize.accessOf(req)));
  });
  app.get('/other-policy', authorize(policy), (req, res) => {
    res.json(show(authorize.accessOf(req, otherPolicy)));
  });
  app.get('/other-server', inExpress.createAuthorize(otherServer(server))(policy), (req, res) => {
    res.json(show(authorize.accessOf(req)));
  });
  app.use('/api', authorize());
  app.get('/api/any', (req, res) => {
    res.json(show(req.access));
  });
  app.get('/api/scoped', authorize(policy), (req, res) => {
    res.json(show(authorize.accessOf(req, policy)));
  });
  app.use(inExpress.answerAccessErrors(server, options));
  const failed: express.ErrorRequestHandler = (error: Error, _req, res, _next) => {
    res.status(500).send(error.message);
  };
  return serve(app.use(failed));
}

async function mountFastify(server: ResourceServer, options: FormOptions): Promise<Mounted> {
  const authorize = inFastify.createAuthorize(server, options);
  const app = fastify();
  app.setErrorHandler((error: Error, _request, reply) => reply.code(500).send(error.message));
  app.register(async (scope) => {
    scope.setErrorHandler(inFastify.answerAccessErrors(server, options));
    scope.get('/open', { onRequest: authorize.optional(policy) }, async (request) => show(request.access));
    scope.get('/forbids', { onRequest: authorize(policy) }, forbid);
    scope.get('/rejects', { onRequest: authorize(policy) }, reject);
    scope.get('/unjudged', async (request) => {
      Object.assign(request, { access: { claims: { sub: 'forged' } } });
      return show(authorize.accessOf(request));
    });
    scope.get('/other-policy', { onRequest: authorize(policy) }, async (request) =>
      show(authorize.accessOf(request, otherPolicy)),
    );
    const other = inFastify.createAuthorize(otherServer(server));
    scope.get('/other-server', { onRequest: other(policy) }, async (request) => show(authorize.accessOf(request)));
  });
  app.register(
    async (api) => {
      api.addHook('onRequest', authorize());
      api.get('/any', async (request) => show(authorize.findAccess(request)));
      api.get('/scoped', { preHandler: authorize(policy) }, async (request) =>
        show(authorize.accessOf(request, policy)),
      );
    },
    { prefix: '/api' },
  );
  const origin = await app.listen({ port: 0, host: '127.0.0.1' });
  return { origin, close: () => app.close() };
}

function createHono(server: ResourceServer, options: FormOptions): Hono {
  const authorize = inHono.createAuthorize(server, options);
  const app = new Hono<{ Variables: { access: unknown } }>();
  app.get('/open', authorize.optional(policy), (c) => c.json(show(c.var.access)));
  app.get('/forbids', authorize(policy), forbid);
  app.get('/rejects', authorize(policy), reject);
  app.get('/unjudged', (c) => {
    c.set('access', { claims: { sub: 'forged' } });
    return c.json(show(authorize.accessOf(c)));
  });
  app.get('/other-policy', authorize(policy), (c) => c.json(show(authorize.accessOf(c, otherPolicy))));
  const other = inHono.createAuthorize(otherServer(server));
  app.get('/other-server', other(policy), (c) => c.json(show(authorize.accessOf(c))));
  app.use('/api/*', authorize());
  app.get('/api/any', (c) => c.json(show(authorize.findAccess(c))));
  app.get('/api/scoped', authorize(policy), (c) => c.json(show(c.var.access)));
  const otherwise = (error: Error): Response => new Response(error.message, { status: 500 });
  return app.onError(inHono.answerAccessErrors(server, { ...options, otherwise })) as unknown as Hono; // without its variables
}

/** Serves what is web-standard from `node:http`. */
function serveFetch(answer: (request: Request) => Promise<Response>): Promise<Mounted> {
  return serve(async (incoming, outgoing) => {
    const request = new Request(`http://${incoming.headers.host}${incoming.url}`, {
      headers: incoming.headers as Record<string, string>, // none of the tests repeats one
    });
    const response = await answer(request);
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    outgoing.end(await response.text());
  });
}

function mountFetch(server: ResourceServer, options: FormOptions): Promise<Mounted> {
  const protect = inFetch.createProtect(server, options);
  type Answer = (request: Request) => Response | Promise<Response>;
  const respond = (_request: Request, access: Access<RegisteredClaims> | undefined) => Response.json(show(access));
  const routes: Readonly<Record<string, Answer>> = {
    '/open': protect.optional(policy, respond),
    '/forbids': protect(policy, forbid),
    '/rejects': protect(policy, reject),
    '/api/any': protect({}, respond),
    '/api/scoped': protect({}, protect(policy, respond)),
  };
  return serveFetch(async (request) => {
    try {
      return (await routes[new URL(request.url).pathname]?.(request)) ?? new Response(null, { status: 404 });
    } catch (error) {
      return new Response((error as Error).message, { status: 500 }); // the tests throw nothing else
    }
  });
}

function mountNode(server: ResourceServer, options: FormOptions): Promise<Mounted> {
  const protect = inNode.createProtect(server, options);
  type Handler = inNode.ProtectedHandler<Claims, Access | undefined>;
  const respond: Handler = (_request, response, access) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(show(access)));
  };
  const routes: Readonly<Record<string, RequestListener>> = {
    '/open': protect.optional(policy, respond),
    '/forbids': protect(policy, forbid),
    '/rejects': protect(policy, reject),
    '/api/any': protect({}, respond),
    '/api/scoped': protect({}, protect(policy, respond)),
  };
  return serve(async (request, response) => {
    try {
      await routes[request.url ?? '']?.(request, response);
    } catch (error) {
      response.writeHead(500).end((error as Error).message); // the tests throw nothing else
    }
  });
}

export type Mount = (server: ResourceServer, options: FormOptions) => Promise<Mounted>;

/** Each framework. */
export const mounts: Readonly<Record<string, Mount>> = {
  express: mountExpress,
  fastify: mountFastify,
  hono: (server, options) => {
    const app = createHono(server, options);
    return serveFetch(async (request) => app.fetch(request));
  },
  fetch: mountFetch,
  node: mountNode,
};
