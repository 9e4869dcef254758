import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import { type ArgumentsHost, Catch, Controller, type ExceptionFilter, Get, Module, UseGuards } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import express from 'express';
import fastify, { type FastifyInstance } from 'fastify';
import { Hono } from 'hono';
import * as expressAdapter from '../../src/adapters/express.ts';
import * as fastifyAdapter from '../../src/adapters/fastify.ts';
import * as fetchAdapter from '../../src/adapters/fetch.ts';
import * as honoAdapter from '../../src/adapters/hono.ts';
import * as nestAdapter from '../../src/adapters/nest.ts';
import * as nodeAdapter from '../../src/adapters/node.ts';
import type { Access } from '../../src/resource-server.ts';
import { decorate } from './decorate.ts';
import { behave, createServers, describeAccess, HandlerError, prefix, routes } from './scene.ts';

/** A framework with the routes of the scene, on a socket. */
export interface Running {
  readonly origin: string;
  /** The errors of the requests that were refused, as they were told. */
  readonly refused: readonly unknown[];
  close(): Promise<void>;
}

type Start = () => Promise<Running>;

async function listen(server: Server, refused: readonly unknown[]): Promise<Running> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo; // it listens on TCP
  return {
    origin: `http://127.0.0.1:${port}`,
    refused,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** Where frameworks answer what handlers throw, this is the answer: the error itself has come through. */
function textOf(error: unknown): string {
  return error instanceof HandlerError ? error.message : `unexpected ${error}`;
}

const node: Start = () => {
  const refused: unknown[] = [];
  const servers = createServers();
  const listeners = new Map<string, RequestListener>();
  for (const { path, server, policy, behaviour } of routes) {
    const protect = nodeAdapter.createProtect(servers[server], { onRefused: (error) => refused.push(error) });
    const listener = protect(policy, (_request, response, access) =>
      behave(behaviour, () => {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(describeAccess(access)));
      }),
    );
    listeners.set(path, listener).set(`${prefix}${path}`, listener);
  }
  const http = createServer(async (request, response) => {
    try {
      await listeners.get(request.url ?? '')?.(request, response);
    } catch (error) {
      response.writeHead(500).end(textOf(error));
    }
  });
  return listen(http, refused);
};

const expressApp: Start = () => {
  const refused: unknown[] = [];
  const servers = createServers();
  const router = express.Router();
  for (const { path, server, policy, behaviour } of routes) {
    const protect = expressAdapter.createProtect(servers[server], { onRefused: (error) => refused.push(error) });
    router.get(
      path,
      protect(policy, (_req, res, access) => behave(behaviour, () => res.json(describeAccess(access)))),
    );
  }
  const app = express();
  const failed: express.ErrorRequestHandler = (error, _req, res, _next) => {
    res.status(500).send(textOf(error));
  };
  app.use(prefix, router).use(router).use(failed);
  return listen(createServer(app), refused);
};

const fastifyApp: Start = async () => {
  const refused: unknown[] = [];
  const servers = createServers();
  const app = fastify();
  app.setErrorHandler((error, _request, reply) => reply.code(500).send(textOf(error)));
  const plugin = async (scope: FastifyInstance) => {
    for (const { path, server, policy, behaviour } of routes) {
      const protect = fastifyAdapter.createProtect(servers[server], { onRefused: (error) => refused.push(error) });
      scope.get(
        path,
        protect(policy, (_request, reply, access) => behave(behaviour, () => reply.send(describeAccess(access)))),
      );
    }
  };
  app.register(plugin).register(plugin, { prefix });
  const origin = await app.listen({ port: 0, host: '127.0.0.1' });
  return { origin, refused, close: () => app.close() };
};

const hono: Start = () => {
  const refused: unknown[] = [];
  const servers = createServers();
  const inner = new Hono<{ Bindings: HttpBindings }>();
  for (const { path, server, policy, behaviour } of routes) {
    const protect = honoAdapter.createProtect<{ Bindings: HttpBindings }>(servers[server], {
      connection: (c) => c.env.incoming.socket,
      onRefused: (error) => refused.push(error),
    });
    inner.get(
      path,
      protect(policy, (c, access) => behave(behaviour, () => c.json(describeAccess(access)))),
    );
  }
  const app = new Hono().route('/', inner).route(prefix, inner);
  app.onError((error, c) => c.text(textOf(error), 500));
  return listen(createAdaptorServer(app) as Server, refused); // HTTP/1 unless told otherwise
};

const honoBasePath: Start = () => {
  const refused: unknown[] = [];
  const servers = createServers();
  const root = new Hono<{ Bindings: HttpBindings }>();
  for (const app of [root, root.basePath(prefix)]) {
    for (const { path, server, policy, behaviour } of routes) {
      const protect = honoAdapter.createProtect<{ Bindings: HttpBindings }>(servers[server], {
        connection: (c) => c.env.incoming.socket,
        onRefused: (error) => refused.push(error),
      });
      app.get(
        path,
        protect(policy, async (c, access) => behave(behaviour, () => c.json(describeAccess(access)))),
      );
    }
  }
  root.onError((error, c) => c.text(textOf(error), 500));
  return listen(createAdaptorServer(root) as Server, refused); // HTTP/1 unless told otherwise
};

const fetchHandler: Start = () => {
  const refused: unknown[] = [];
  const servers = createServers();
  const handlers = new Map<string, (request: Request, bindings: HttpBindings) => Response | Promise<Response>>();
  for (const { path, server, policy, behaviour } of routes) {
    const protect = fetchAdapter.createProtect(servers[server], {
      connection: (_request, { incoming }: HttpBindings): Socket => incoming.socket,
      onRefused: (error) => refused.push(error),
    });
    const handler = protect(policy, (_request, access, _bindings: HttpBindings) =>
      behave(behaviour, () => Response.json(describeAccess(access))),
    );
    handlers.set(path, handler).set(`${prefix}${path}`, handler);
  }
  const fetch = async (request: Request, bindings: HttpBindings): Promise<Response> => {
    try {
      const handler = handlers.get(new URL(request.url).pathname);
      return (await handler?.(request, bindings)) ?? new Response(null, { status: 404 });
    } catch (error) {
      return new Response(textOf(error), { status: 500 });
    }
  };
  // As Hono's own; the handler is called without Hono.
  return listen(createAdaptorServer({ fetch } as Parameters<typeof createAdaptorServer>[0]) as Server, refused);
};

class FailureFilter implements ExceptionFilter {
  catch(error: unknown, host: ArgumentsHost) {
    host.switchToHttp().getResponse<express.Response>().status(500).send(textOf(error));
  }
}
Catch()(FailureFilter);

/** A Nest application of one controller for each route, below a global prefix or at the root. */
async function createNest(globalPrefix: string, refused: unknown[]) {
  const servers = createServers();
  const controllers = routes.map(({ path, server, policy, behaviour }) => {
    class Messages {
      read(access: Access) {
        return behave(behaviour, () => describeAccess(access));
      }
    }
    decorate(Messages.prototype, 'read', Get(path), nestAdapter.Protect(policy));
    nestAdapter.CurrentAccess()(Messages.prototype, 'read', 0);
    UseGuards(nestAdapter.createGuard(servers[server], { onRefused: (error) => refused.push(error) }))(Messages);
    Controller()(Messages);
    return Messages;
  });
  class Root {}
  Module({ controllers })(Root);
  const app = await NestFactory.create(Root, { logger: false });
  app.setGlobalPrefix(globalPrefix);
  // It would give every exception its own form, were refusals not answered before.
  app.useGlobalFilters(new FailureFilter());
  await app.init();
  return app.getHttpAdapter().getInstance() as RequestListener; // the Express application
}

const nest: Start = async () => {
  const refused: unknown[] = [];
  const [atRoot, below] = await Promise.all([createNest('', refused), createNest(prefix, refused)]);
  const choose = ({ url = '' }: IncomingMessage) => (url.startsWith(prefix) ? below : atRoot);
  return listen(
    createServer((request, response) => choose(request)(request, response)),
    refused,
  );
};

/** Every way to mount the gate, by name. */
export const frameworks = {
  node,
  express: expressApp,
  fastify: fastifyApp,
  hono,
  'hono, basePath': honoBasePath,
  fetch: fetchHandler,
  nest,
} as const satisfies Readonly<Record<string, Start>>;
