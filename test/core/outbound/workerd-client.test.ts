import { createServer } from 'node:http';
import { expect, it } from 'vitest';
import { createWorkerdClient } from '../../../src/core/outbound/http-client.ts';
import { listen } from '../../support/listening.ts';

it('the global fetch is called, and closing does not change it', async () => {
  const server = createServer((request, response) => response.end(request.headers['accept']));
  const { origin, close } = await listen(server);
  try {
    const client = createWorkerdClient({});
    client.close();
    const { signal } = new AbortController();
    const init = { method: 'GET', headers: { accept: 'application/json' }, redirect: 'manual', signal } as const;
    const { status, body } = await client.fetch(origin, init);
    expect([status, await new Response(body as ReadableStream).text()]).toEqual([200, 'application/json']);
  } finally {
    await close();
  }
});

it('a ca is accepted on this runtime, which is not Workers', () => {
  expect(() => createWorkerdClient({ ca: 'of no matter here' })).not.toThrow();
});
