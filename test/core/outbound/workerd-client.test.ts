import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { createWorkerdClient } from '../../../src/core/outbound/http-client.ts';

it('the global fetch is called, and closing does not change it', async () => {
  const server = createServer((request, response) => response.end(request.headers['accept']));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on TCP
  try {
    const client = createWorkerdClient({});
    client.close();
    const { signal } = new AbortController();
    const init = { method: 'GET', headers: { accept: 'application/json' }, redirect: 'manual', signal } as const;
    const { status, body } = await client.fetch(`http://127.0.0.1:${port}/`, init);
    expect(status).toBe(200);
    expect(await new Response(body as ReadableStream).text()).toBe('application/json');
  } finally {
    server.close();
  }
});

it('a ca is accepted on this runtime, which is not Workers', () => {
  expect(() => createWorkerdClient({ ca: 'of no matter here' })).not.toThrow();
});
