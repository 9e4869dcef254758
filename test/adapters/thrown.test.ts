import { createServer, IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import { Socket } from 'node:net';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { describe, expect, it, vi } from 'vitest';
import * as inExpress from '../../src/adapters/express.ts';
import * as inFastify from '../../src/adapters/fastify.ts';
import { answerAccessErrors } from '../../src/adapters/hono.ts';
import { createProtect as createNodeProtect, toResourceRequest } from '../../src/adapters/node.ts';
import { AccessError, type Reason } from '../../src/core/failures.ts';
import { listen } from '../support/listening.ts';
import { issuer } from './issuer.ts';
import { createServers, policy } from './scene.ts';

it("Hono without an error handler: an error that is not a refusal → Hono's response and log", async () => {
  const logged = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  const app = new Hono();
  app.onError(answerAccessErrors(createServers(issuer).usual));
  app.get('/teapot', () => {
    throw new HTTPException(418, { message: 'a teapot' });
  });
  app.get('/defect', () => {
    throw new Error('a defect');
  });
  try {
    expect((await app.request('/teapot')).status).toBe(418);
    const answer = await app.request('/defect');
    expect([answer.status, await answer.text()]).toEqual([500, 'Internal Server Error']);
    expect(logged).toHaveBeenCalledOnce();
  } finally {
    logged.mockRestore();
  }
});

it.each<readonly [Reason, number]>([
  ['insufficient_scope', 403],
  ['expired', 401],
  ['keys_unavailable', 503],
])('no error handler, a handler throws %s → %i, without detail', async (reason, status) => {
  const fail = (): never => {
    throw new AccessError(reason, { cause: new Error('of the cause') });
  };
  const inFastify = fastify();
  inFastify.get('/', fail);
  const { statusCode, body } = await inFastify.inject('/');
  expect([statusCode, body]).toEqual([status, expect.not.stringContaining('of the cause')]);

  const inExpress = express().set('env', 'production').get('/', fail);
  const { origin, close } = await listen(createServer(inExpress));
  const response = await fetch(origin);
  const text = await response.text();
  await close();
  expect([response.status, text]).toEqual([status, expect.stringContaining(String(STATUS_CODES[status]))]);
});

it('toResourceRequest: a request of node:http → the path that the client requested', () => {
  const rawHeaders = ['Host', 'api.example', 'Authorization', 'Bearer a', 'Authorization', 'Bearer b'];
  const incoming = Object.assign(new IncomingMessage(new Socket()), { method: 'GET', url: '/cut', rawHeaders });
  expect(toResourceRequest(incoming).url).toBe('http://api.example/cut');
  const whole = toResourceRequest(incoming, '/api/cut');
  expect([whole.method, whole.url]).toEqual(['GET', 'http://api.example/api/cut']);
  expect(whole.headers.get('authorization')).toBe('Bearer a, Bearer b');
});

const servers = createServers(issuer);
const headers = () => issuer.headers({ scope: 'read:messages' });
const error = new AccessError('insufficient_scope');

/** A response in flight when the handler finds that it should not be. */
function begin(response: ServerResponse): never {
  response.writeHead(200).write('begun');
  throw error;
}

/** Calls an application that keeps the errors which reach it, and ends the response. */
async function call(listener: Parameters<typeof createServer>[1]): Promise<readonly [number, string]> {
  const { origin, close } = await listen(createServer(listener));
  try {
    const response = await fetch(origin, { headers: headers() });
    return [response.status, await response.text()];
  } finally {
    await close();
  }
}

describe('an AccessError after the response has begun → nothing is written, onRefused is not called', () => {
  const told: unknown[] = [];
  const options = { onRefused: (refused: unknown) => told.push(refused) };

  it('node → thrown to the caller', async () => {
    const listener = createNodeProtect(servers.usual, options)(policy, (_incoming, outgoing) => begin(outgoing));
    const thrown: unknown[] = [];
    const answer = await call(async (incoming, outgoing) => {
      try {
        await listener(incoming, outgoing);
      } catch (caught) {
        thrown.push(caught);
        outgoing.end(', ended');
      }
    });
    expect([answer, thrown, told]).toEqual([[200, 'begun, ended'], [error], []]);
  });

  it('express → passed to the next error handler', async () => {
    const app = express();
    const passed: unknown[] = [];
    app.get('/', inExpress.createAuthorize(servers.usual)(policy), (_req, res) => begin(res));
    app.use(inExpress.answerAccessErrors(servers.usual, options));
    app.use(((caught, _req, res, _next) => {
      passed.push(caught);
      res.end(', ended');
    }) satisfies express.ErrorRequestHandler);
    expect([await call(app), passed, told]).toEqual([[200, 'begun, ended'], [error], []]);
  });

  it('fastify → the response is unchanged', async () => {
    const app = fastify();
    app.get(
      '/',
      {
        onRequest: inFastify.createAuthorize(servers.usual)(policy),
        errorHandler: inFastify.answerAccessErrors(servers.usual, options),
      },
      (_request, reply) => {
        reply.send('whole');
        throw error;
      },
    );
    const answer = await app.inject({ url: '/', headers: headers() });
    expect([answer.statusCode, answer.body, told]).toEqual([200, 'whole', []]);
  });

  it('fastify, after an error handler that has responded → thrown again', async () => {
    const app = fastify();
    const answerAccessErrors = inFastify.answerAccessErrors(servers.usual, options);
    const thrown: unknown[] = [];
    app.setErrorHandler((caught, request, reply) => {
      reply.send('their own');
      try {
        answerAccessErrors(caught, request, reply);
      } catch (again) {
        thrown.push(again);
      }
    });
    app.get('/', () => {
      throw error;
    });
    const answer = await app.inject({ url: '/' });
    expect([answer.body, thrown, told]).toEqual(['their own', [error], []]);
  });
});

it('fastify: a reply that fails, for a request that had to wait → 500, and the handler is not called', async () => {
  const app = fastify();
  let handled = 0;
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers = () => {
      throw new Error('of the reply');
    };
    done();
  });
  app.get('/', { onRequest: inFastify.createAuthorize(servers.slow)({ scopes: ['admin'] }) }, () => {
    handled++;
  });
  const answer = await app.inject({ url: '/', headers: headers() });
  expect([answer.statusCode, answer.json().message, handled]).toEqual([403, 'of the reply', 0]);
});
