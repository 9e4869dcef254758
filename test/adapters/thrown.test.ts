import { createServer, IncomingMessage, STATUS_CODES } from 'node:http';
import { Socket } from 'node:net';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { expect, it, vi } from 'vitest';
import { answerAccessErrors } from '../../src/adapters/hono.ts';
import { toResourceRequest } from '../../src/adapters/node.ts';
import { AccessError, type Reason } from '../../src/core/failures.ts';
import { listen } from '../support/listening.ts';
import { issuer } from './issuer.ts';
import { createServers } from './scene.ts';

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
