import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Request, Response } from 'express';
import { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { expect, it, vi } from 'vitest';
import { createProtect } from '../../src/adapters/express.ts';
import { answerAccessErrors } from '../../src/adapters/hono.ts';
import { toResourceRequest } from '../../src/adapters/node.ts';
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

it.each([
  ['an error', new RangeError('of the handler'), 'of the handler'],
  ['nothing', undefined, 'Rejected promise'],
])(
  'Express 4, which looks at no promise: a handler that rejects with %s → the error handlers',
  async (_name, error, text) => {
    const { authorization } = issuer.headers({ scope: 'read:messages' });
    const incoming = new IncomingMessage(new Socket());
    const rawHeaders = ['Host', 'api.example', 'Authorization', authorization];
    const request = Object.assign(incoming, { method: 'GET', url: '/', originalUrl: '/', rawHeaders }) as Request; // all that is read
    const handler = createProtect(createServers(issuer).usual)(policy, () => Promise.reject(error));
    const passed = await new Promise<unknown>((resolve) => {
      const returned = handler(request, new ServerResponse(incoming) as Response, resolve); // all that is written to
      expect(returned).toBeUndefined();
    });
    expect(passed).toMatchObject({ message: text });
  },
);

it('toResourceRequest: a request of node:http → the path that the client requested', () => {
  const rawHeaders = ['Host', 'api.example', 'Authorization', 'Bearer a', 'Authorization', 'Bearer b'];
  const incoming = Object.assign(new IncomingMessage(new Socket()), { method: 'GET', url: '/cut', rawHeaders });
  expect(toResourceRequest(incoming).url).toBe('http://api.example/cut');
  const whole = toResourceRequest(incoming, '/api/cut');
  expect([whole.method, whole.url]).toEqual(['GET', 'http://api.example/api/cut']);
  expect(whole.headers.get('authorization')).toBe('Bearer a, Bearer b');
});
