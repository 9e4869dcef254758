import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { startStream } from '../../tools/load/stream.js';

let server: Server;

afterEach(() => {
  server.close();
  server.closeAllConnections();
});

/** Sends 400 requests in 0.4 s to a server with this listener. Returns the report. */
async function pace(listener: RequestListener) {
  server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const source = { type: 'fixed', path: '/some/path', tokens: ['one', 'two'] };
  const kinds = [{ name: 'good', weight: 1, expect: [200], timed: true, source }];
  const stream = startStream({ port, connections: 32, rate: 1000, limit: 400, kinds });
  await vi.waitFor(() => expect(stream.state().done).toBe(true), { timeout: 60_000 });
  return stream.stop();
}

it('200 for every request → all are counted, with the tokens in turn', async () => {
  const seen = new Map<string, number>();
  const found = await pace(({ url, headers }, response) => {
    const what = [url, headers.authorization].join(' ');
    seen.set(what, (seen.get(what) ?? 0) + 1);
    response.setHeader('content-length', 4).end('body');
  });
  expect(found).toMatchObject({ sent: 400, answered: 400, lost: 0, wrong: {} });
  expect(Object.fromEntries(seen)).toEqual({ '/some/path Bearer one': 200, '/some/path Bearer two': 200 });
});

it('refused requests → counted as wrong', async () => {
  const found = await pace((_, response) => response.writeHead(401, { 'content-length': 0 }).end());
  expect(found).toMatchObject({ answered: 400, wrong: { 'good 401': 400 } });
});

it('the server hangs at first → requests that were due in that time have waited, not only sent ones', async () => {
  let held: (() => void)[] | undefined = [];
  const found = await pace((_, response) => {
    response.setHeader('content-length', 4);
    if (held === undefined) return void response.end('body');
    held.push(() => response.end('body'));
    if (held.length > 1) return;
    setTimeout(() => {
      for (const answer of held ?? []) answer();
      held = undefined;
    }, 300);
  });
  expect(found.answered).toBe(400);
  // 32 connections carry 32 of the 300 requests that were due: by the clock of each sending, the others were quick.
  expect(found.p50).toBeGreaterThan(20);
});
