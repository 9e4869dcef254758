import { createServer, type ServerResponse } from 'node:http';
import express from 'express';
import fastify from 'fastify';
import { describe, expect, it } from 'vitest';
import * as inExpress from '../../src/adapters/express.ts';
import * as inFastify from '../../src/adapters/fastify.ts';
import { createProtect as createNodeProtect } from '../../src/adapters/node.ts';
import { AccessError } from '../../src/core/failures.ts';
import { listen } from '../support/listening.ts';
import { issuer } from './issuer.ts';
import { createServers, policy } from './scene.ts';

const servers = createServers(issuer);
const headers = () => issuer.headers({ scope: 'read:messages' });
const error = new AccessError('insufficient_scope');

/** An answer that is on its way when the handler finds that it should not be. */
function begin(response: ServerResponse): never {
  response.writeHead(200).write('begun');
  throw error;
}

/** Calls an application that keeps the errors which reach it, and ends the answer. */
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
