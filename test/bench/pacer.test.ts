import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, expect, it } from 'vitest';

const run = promisify(execFile);
const pacer = fileURLToPath(new URL('../../tools/load/pacer.js', import.meta.url));
let server: Server;
let folder: string;

afterEach(() => {
  server.close();
  server.closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
});

/** Sends 400 requests in 0.4 s to a server with this listener. Returns the output of the pacer. */
async function pace(listener: Parameters<typeof createServer>[1]) {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-pacer-'));
  const file = join(folder, 'lines.txt');
  writeFileSync(file, 'Bearer one\nDPoP two\tproof\n');
  server = createServer(listener as Parameters<typeof createServer>[0]).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { stdout } = await run(process.execPath, [pacer, `http://127.0.0.1:${port}/some/path`, file, '1000', '0.4']);
  return JSON.parse(stdout);
}

it('200 for every request → all are counted, with the lines of the file in turn', async () => {
  const seen = new Map<string, number>();
  const found = await pace(({ url, headers }, response) => {
    const what = [url, headers.authorization, headers['dpop']].join(' ');
    seen.set(what, (seen.get(what) ?? 0) + 1);
    response.end('body');
  });
  expect(found).toMatchObject({ answered: 400, lost: 0, unexpected: 0 });
  expect(Object.fromEntries(seen)).toEqual({ '/some/path Bearer one ': 200, '/some/path DPoP two proof': 200 });
});

it('refused requests → counted as unexpected', async () => {
  const found = await pace((_, response) => response.writeHead(401, { 'content-length': 0 }).end());
  expect(found).toMatchObject({ answered: 400, unexpected: 400 });
});

it('the server hangs at first → every request that was due in that time has waited, not only sent ones', async () => {
  let held: (() => void)[] | undefined = [];
  const found = await pace((_, response) => {
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
  expect(found.due.p50).toBeGreaterThan(found.sent.p50);
});
