import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import express from 'express';
import fastify, { type FastifyInstance } from 'fastify';
import { type Context, type Env, Hono } from 'hono';
import * as inExpress from '../../../src/adapters/express.ts';
import * as inFastify from '../../../src/adapters/fastify.ts';
import * as inFetch from '../../../src/adapters/fetch.ts';
import * as inHono from '../../../src/adapters/hono.ts';
import * as inNode from '../../../src/adapters/node.ts';
import type { Connection } from '../../../src/http/request.ts';
import { behave, describeAccess, prefix, routes } from '../scene.ts';
import { type Stage, textOf } from './stage.ts';

/** The routes of the scene in Express, with middleware before the handlers. */
export function createExpressApp({ servers, onRefused }: Stage): express.Express {
  const router = express.Router();
  for (const { path, server, policy, behaviour } of routes) {
    const authorize = inExpress.createAuthorize(servers[server], { onRefused });
    router.get(path, authorize(policy), (req, res) =>
      behave<unknown>(behaviour, () => res.json(describeAccess(inExpress.accessOf(req)))),
    );
  }
  const failed: express.ErrorRequestHandler = (error, _req, res, _next) => {
    res.status(500).send(textOf(error));
  };
  return express().use(prefix, router).use(router).use(inExpress.answerAccessErrors(servers.usual)).use(failed);
}

/** The same in Fastify, with hooks: in turn before the body is read and before the handler. */
export function createFastifyApp({ servers, onRefused }: Stage): FastifyInstance {
  const app = fastify();
  app.setErrorHandler((error, _request, reply) => reply.code(500).send(textOf(error)));
  const plugin = async (scope: FastifyInstance) => {
    scope.setErrorHandler(inFastify.answerAccessErrors(servers.usual));
    for (const [index, { path, server, policy, behaviour }] of routes.entries()) {
      const hook = inFastify.createAuthorize(servers[server], { onRefused })(policy);
      scope.get(path, { [index % 2 === 0 ? 'onRequest' : 'preHandler']: hook }, (request, reply) =>
        behave(behaviour, () => reply.send(describeAccess(inFastify.accessOf(request)))),
      );
    }
  };
  app.register(plugin).register(plugin, { prefix });
  return app;
}

/** The same in Hono. */
export function createHonoApp<E extends Env>(
  { servers, onRefused }: Stage,
  connection: (c: Context<E>) => Connection,
): Hono<E> {
  const inner = new Hono<E>();
  for (const { path, server, policy, behaviour } of routes) {
    const authorize = inHono.createAuthorize<E>(servers[server], { connection, onRefused });
    inner.get(path, authorize(policy), (c) => behave(behaviour, () => c.json(describeAccess(c.var.access))));
  }
  const app = new Hono<E>().route('/', inner).route(prefix, inner);
  const otherwise = (error: Error, c: Context): Response => c.text(textOf(error), 500);
  return app.onError(inHono.answerAccessErrors<E>(servers.usual, { otherwise }));
}

/** The same without a framework, by functions that call `next`. */
export function createNodeApp({ servers, onRefused }: Stage): RequestListener {
  type Route = (request: IncomingMessage, response: ServerResponse) => void;
  const listeners = new Map<string, Route>();
  for (const { path, server, policy, behaviour } of routes) {
    const authorize = inNode.createAuthorize(servers[server], { onRefused })(policy);
    const route: Route = (request, response) =>
      authorize(request, response, async () => {
        try {
          await behave(behaviour, () => {
            response.writeHead(200, { 'content-type': 'application/json' });
            response.end(JSON.stringify(describeAccess(inNode.accessOf(request))));
          });
        } catch (error) {
          response.writeHead(500).end(textOf(error));
        }
      });
    listeners.set(path, route).set(`${prefix}${path}`, route);
  }
  return (request, response) => listeners.get(request.url ?? '')?.(request, response);
}

/** The same for web-standard requests: what is let in has no answer yet. */
export function createFetchApp<B>(
  { servers, onRefused }: Stage,
  connection: (request: Request, bindings: B) => Connection,
): (request: Request, bindings: B) => Promise<Response> {
  const handlers = new Map<string, (request: Request, bindings: B) => Promise<Response>>();
  for (const { path, server, policy, behaviour } of routes) {
    const authorize = inFetch.createAuthorize(servers[server], { connection, onRefused })(policy);
    const handler = async (request: Request, bindings: B): Promise<Response> => {
      const refused = await authorize(request, bindings);
      if (refused !== undefined) return refused;
      const access = inFetch.accessOf(request);
      const answer = await behave(behaviour, () => Response.json(describeAccess(access)));
      if (access.dpopNonce !== undefined) answer.headers.set('dpop-nonce', access.dpopNonce);
      return answer;
    };
    handlers.set(path, handler).set(`${prefix}${path}`, handler);
  }
  return async (request, bindings) => {
    try {
      const path = /^https?:\/\/[^/]*(\/[^?#]*)/.exec(request.url)?.[1] ?? '';
      return (await handlers.get(path)?.(request, bindings)) ?? new Response(null, { status: 404 });
    } catch (error) {
      return new Response(textOf(error), { status: 500 });
    }
  };
}
