import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import * as inExpress from '../../../src/adapters/express.ts';
import * as inFastify from '../../../src/adapters/fastify.ts';
import * as inFetch from '../../../src/adapters/fetch.ts';
import * as inHono from '../../../src/adapters/hono.ts';
import * as inNode from '../../../src/adapters/node.ts';
import { AccessError } from '../../../src/failures.ts';
import type { ErrorBody, ErrorReport } from '../../../src/refusal/error-body.ts';
import type { Access, ResourceServer } from '../../../src/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../../src/token/claims.ts';
import { policy } from '../scene.ts';

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
/** Another than that of the routes. */
const otherPolicy = { scopes: ['read:messages'] };

async function listen(listener: RequestListener): Promise<Mounted> {
  const server = createServer(listener);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, // it listens on TCP
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function mountExpress(server: ResourceServer, options: FormOptions): Promise<Mounted> {
  const authorize = inExpress.createAuthorize(server, options);
  const protect = inExpress.createProtect(server, options);
  const app = express();
  app.get('/open', authorize.optional(policy), (req, res) => res.json(show(inExpress.findAccess(req))) && undefined);
  app.get(
    '/open-protect',
    protect.optional(policy, (_req, res, access) => res.json(show(access))),
  );
  app.get('/forbids', authorize(policy), forbid);
  app.get('/rejects', authorize(policy), reject);
  app.get('/forbids-protect', protect(policy, forbid));
  app.get('/rejects-protect', protect(policy, reject));
  app.get('/unjudged', (req, res) => {
    res.json(show(inExpress.accessOf(req)));
  });
  app.get('/other-policy', authorize(policy), (req, res) => {
    res.json(show(inExpress.accessOf(req, otherPolicy)));
  });
  app.use('/api', authorize());
  app.get('/api/any', (req, res) => {
    res.json(show(req.access));
  });
  app.get('/api/scoped', authorize(policy), (req, res) => {
    res.json(show(inExpress.accessOf(req, policy)));
  });
  app.get(
    '/api/protected',
    protect(policy, (_req, res, access) => res.json(show(access))),
  );
  app.use(inExpress.answerAccessErrors(server, options));
  const failed: express.ErrorRequestHandler = (error: Error, _req, res, _next) => {
    res.status(500).send(error.message);
  };
  return listen(app.use(failed));
}

async function mountFastify(server: ResourceServer, options: FormOptions): Promise<Mounted> {
  const authorize = inFastify.createAuthorize(server, options);
  const protect = inFastify.createProtect(server, options);
  const app = fastify();
  app.setErrorHandler((error: Error, _request, reply) => reply.code(500).send(error.message));
  app.register(async (scope) => {
    scope.setErrorHandler(inFastify.answerAccessErrors(server, options));
    scope.get('/open', { onRequest: authorize.optional(policy) }, async (request) =>
      show(inFastify.findAccess(request)),
    );
    scope.get(
      '/open-protect',
      protect.optional(policy, async (_request, _reply, access) => show(access)),
    );
    scope.get('/forbids', { onRequest: authorize(policy) }, forbid);
    scope.get('/rejects', { onRequest: authorize(policy) }, reject);
    scope.get('/unjudged', async (request) => show(inFastify.accessOf(request)));
    scope.get('/other-policy', { onRequest: authorize(policy) }, async (request) =>
      show(inFastify.accessOf(request, otherPolicy)),
    );
  });
  app.get('/forbids-protect', protect(policy, forbid));
  app.get('/rejects-protect', protect(policy, reject));
  app.register(
    async (api) => {
      api.addHook('onRequest', authorize());
      api.get('/any', async (request) => show(inFastify.accessOf(request)));
      api.get('/scoped', { preHandler: authorize(policy) }, async (request) =>
        show(inFastify.accessOf(request, policy)),
      );
      api.get(
        '/protected',
        protect(policy, async (_request, _reply, access) => show(access)),
      );
    },
    { prefix: '/api' },
  );
  const origin = await app.listen({ port: 0, host: '127.0.0.1' });
  return { origin, close: () => app.close() };
}

function createHono(server: ResourceServer, options: FormOptions): Hono {
  const authorize = inHono.createAuthorize(server, options);
  const protect = inHono.createProtect(server, options);
  const app = new Hono();
  app.get('/open', authorize.optional(policy), (c) => c.json(show(c.var.access)));
  app.get(
    '/open-protect',
    protect.optional(policy, (c, access) => c.json(show(access))),
  );
  app.get('/forbids', authorize(policy), forbid);
  app.get('/rejects', authorize(policy), reject);
  app.get('/forbids-protect', protect(policy, forbid));
  app.get('/rejects-protect', protect(policy, reject));
  app.get('/unjudged', (c) => c.json(show(inHono.accessOf(c))));
  app.get('/other-policy', authorize(policy), (c) => c.json(show(inHono.accessOf(c, otherPolicy))));
  app.use('/api/*', authorize());
  app.get('/api/any', (c) => c.json(show(inHono.findAccess(c))));
  app.get('/api/scoped', authorize(policy), (c) => c.json(show(c.var.access)));
  app.get(
    '/api/protected',
    protect(policy, (c, access) => c.json(show(access))),
  );
  const otherwise = (error: Error): Response => new Response(error.message, { status: 500 });
  return app.onError(inHono.answerAccessErrors(server, { ...options, otherwise }));
}

/** Serves what is web-standard from `node:http`. */
function serveFetch(answer: (request: Request) => Promise<Response>): Promise<Mounted> {
  return listen(async (incoming, outgoing) => {
    const request = new Request(`http://${incoming.headers.host}${incoming.url}`, {
      headers: incoming.headers as Record<string, string>, // none of the tests repeats one
    });
    const response = await answer(request);
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    outgoing.end(await response.text());
  });
}

function mountFetch(server: ResourceServer, options: FormOptions): Promise<Mounted> {
  const authorize = inFetch.createAuthorize(server, options);
  const protect = inFetch.createProtect(server, options);
  type Answer = (request: Request) => Response | Promise<Response>;
  const behind =
    (judge: inFetch.AuthorizeRequest, answer: Answer): Answer =>
    async (request) =>
      (await judge(request)) ?? answer(request);
  const found: Answer = (request) => Response.json(show(inFetch.findAccess(request)));
  const routes: Readonly<Record<string, Answer>> = {
    '/open': behind(authorize.optional(policy), found),
    '/open-protect': protect.optional(policy, (_request, access) => Response.json(show(access))),
    '/forbids-protect': protect(policy, forbid),
    '/rejects-protect': protect(policy, reject),
    '/unjudged': (request) => Response.json(show(inFetch.accessOf(request))),
    '/other-policy': behind(authorize(policy), (request) =>
      Response.json(show(inFetch.accessOf(request, otherPolicy))),
    ),
    '/api/any': behind(authorize(), found),
    '/api/scoped': behind(authorize(), behind(authorize(policy), found)),
    '/api/protected': behind(
      authorize(),
      protect(policy, (_request, access) => Response.json(show(access))),
    ),
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
  const authorize = inNode.createAuthorize(server, options);
  const protect = inNode.createProtect(server, options);
  const json = (response: ServerResponse, value: object): void => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(value));
  };
  type Answer = (request: IncomingMessage, response: ServerResponse) => unknown;
  const behind =
    (judge: inNode.AuthorizeMiddleware, answer: Answer): Answer =>
    (request, response) =>
      judge(request, response, () => {
        try {
          answer(request, response);
        } catch (error) {
          response.writeHead(500).end((error as Error).message); // the tests throw nothing else
        }
      });
  const found: Answer = (request, response) => json(response, show(inNode.findAccess(request)));
  const known: Answer = protect(policy, (_request, response, access) => json(response, show(access)));
  const routes: Readonly<Record<string, Answer>> = {
    '/open': behind(authorize.optional(policy), found),
    '/open-protect': protect.optional(policy, (_request, response, access) => json(response, show(access))),
    '/forbids-protect': protect(policy, forbid),
    '/rejects-protect': protect(policy, reject),
    '/unjudged': (request, response) => json(response, show(inNode.accessOf(request))),
    '/other-policy': behind(authorize(policy), (request, response) =>
      json(response, show(inNode.accessOf(request, otherPolicy))),
    ),
    '/api/any': behind(authorize(), found),
    '/api/scoped': behind(authorize(), behind(authorize(policy), found)),
    '/api/protected': behind(authorize(), known),
  };
  return listen(async (request, response) => {
    try {
      await routes[request.url ?? '']?.(request, response);
    } catch (error) {
      response.writeHead(500).end((error as Error).message); // the tests throw nothing else
    }
  });
}

export type Mount = (server: ResourceServer, options: FormOptions) => Promise<Mounted>;

/** Each framework with both forms. */
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
