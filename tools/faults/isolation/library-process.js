// The adapters of the library, each with its own server, for tokens of one key set: the argument has issuer, audience
// and key set. The servers return the received values, and each refusal is one line on stdout.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { createAdaptorServer } from '@hono/node-server';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { createAuthorize as createExpress } from '../../../dist/adapters/express.js';
import { createAuthorize as createFastify } from '../../../dist/adapters/fastify.js';
import { createProtect as createFetch } from '../../../dist/adapters/fetch.js';
import { createAuthorize as createHono } from '../../../dist/adapters/hono.js';
import { createProtect as createNode } from '../../../dist/adapters/node.js';
import { createResourceServer, createStaticKeySet } from '../../../dist/index.js';
import { digest } from './request.js';

const { issuer, audience, jwks } = JSON.parse(process.argv[2] ?? '');
const server = createResourceServer({
  issuers: [{ issuer, keys: createStaticKeySet(jwks) }],
  audience,
  algorithms: ['RS256', 'ES256'],
});

/** The log of a user: the refusal, and the request that it belongs to. */
const log = (error, cookie) => process.stdout.write(`${JSON.stringify({ ...error, cookie })}\n`);
const onNode = { onRefused: (error, request) => log(error, request.headers.cookie) };
const onFetch = { onRefused: (error, request) => log(error, request.headers.get('cookie')) };
const onHono = { onRefused: (error, { req }) => log(error, req.header('cookie')) };

const describe = ({ method, target, cookie, authorization, access, body }) => ({
  ...{ method, target, cookie, authorization, body: digest(body) },
  subject: access.claims.sub,
});
/** @type {(access: any, request: import('node:http').IncomingMessage, body: string) => object} */
const describeNode = (access, { method, url, headers }, body) =>
  describe({ method, target: url, cookie: headers.cookie, authorization: headers.authorization, access, body });
const describeFetch = async (access, request) =>
  describe({
    method: request.method,
    target: request.url.replace(/^https?:\/\/[^/]*/, ''),
    cookie: request.headers.get('cookie'),
    authorization: request.headers.get('authorization'),
    access,
    body: await request.text(),
  });
const policies = { '/echo': {}, '/scoped': { scopes: ['other'] } };

/** The routes of `policies`, by the path of the target. */
function route(protect) {
  const handlers = new Map(Object.entries(policies).map(([path, policy]) => [path, protect(policy)]));
  return (target) => handlers.get(target.replace(/\?.*/, ''));
}

function serveNode() {
  const protect = createNode(server, onNode);
  const find = route((policy) =>
    protect(policy, async (request, response, access) => {
      response.end(JSON.stringify(describeNode(access, request, await text(request))));
    }),
  );
  return createServer(async (request, response) => {
    try {
      await find(request.url ?? '')?.(request, response);
    } catch {
      // The client has ended the connection within the body.
      response.destroy();
    }
  });
}

function serveExpress() {
  const app = express();
  const authorize = createExpress(server, onNode);
  for (const [path, policy] of Object.entries(policies)) {
    app.all(path, authorize(policy), async (request, response) => {
      response.json(describeNode(authorize.accessOf(request), request, await text(request)));
    });
  }
  // A body that the client has cut off is not worth a line on stderr.
  const failed = (_error, _request, response, _next) => response.destroy();
  return createServer(app.use(/** @type {express.ErrorRequestHandler} */ (failed)));
}

async function serveFastify() {
  const app = fastify();
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  const authorize = createFastify(server, { onRefused: (error, { headers }) => log(error, headers.cookie) });
  for (const [url, policy] of Object.entries(policies)) {
    app.route({
      method: ['GET', 'POST'],
      url,
      onRequest: authorize(policy),
      handler: (request, reply) => {
        const body = /** @type {string | undefined} */ (request.body) ?? '';
        return reply.send(describeNode(authorize.accessOf(request), request.raw, body));
      },
    });
  }
  await app.listen({ port: 0, host: '127.0.0.1' });
  return app.server;
}

function serveHono() {
  const app = new Hono();
  const authorize = createHono(server, onHono);
  for (const [path, policy] of Object.entries(policies)) {
    app.all(path, authorize(policy), async (c) => c.json(await describeFetch(c.var.access, c.req.raw)));
  }
  app.onError((_error, c) => c.body(null, 500));
  return createAdaptorServer(app);
}

function serveFetch() {
  const protect = createFetch(server, onFetch);
  const find = route((policy) =>
    protect(policy, async (request, access) => Response.json(await describeFetch(access, request))),
  );
  return createAdaptorServer({
    fetch: (request) =>
      find(request.url.replace(/^https?:\/\/[^/]*/, ''))?.(request) ?? new Response(null, { status: 404 }),
  });
}

const servers = {
  node: serveNode(),
  express: serveExpress(),
  fastify: await serveFastify(),
  hono: serveHono(),
  fetch: serveFetch(),
};
const ports = {};
for (const [name, one] of Object.entries(servers)) {
  if (!one.listening) await once(one.listen(0, '127.0.0.1'), 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (one.address());
  ports[name] = port;
}
process.send?.(ports);
process.on('disconnect', () => process.exit(0));
