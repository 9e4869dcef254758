import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestIssuer, type ListeningIssuer } from '../../src/testing/index.ts';
import { runDoctor } from '../../test/cli/doctor/run-doctor.ts';
import { buildPages } from '../../test/support/packed-pages.ts';
import { passStart } from '../../test/support/pass-start.ts';
import { findFreePort } from '../../tools/shared/network.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const audience = 'https://api.example.com/';

/** Serves a module for another runtime on Node: `pick` finds its handler. */
const serveModule = (pick: string): string => `
  import { serve } from '@hono/node-server';
  const env = { ISSUER: process.env.ISSUER, AUDIENCE: process.env.AUDIENCE };
  const module = await import(process.argv[1]);
  serve({ port: Number(process.env.PORT), fetch: (request, { incoming }) => (${pick}) });
`;

/** Each example, by its file; those without `serve` start by themselves. */
const examples = [
  { name: 'express', file: 'express/server' },
  { name: 'fastify', file: 'fastify/server' },
  { name: 'fetch', file: 'fetch/server' },
  { name: 'hono', file: 'hono/server' },
  { name: 'nest', file: 'nest/server' },
  { name: 'node', file: 'node/server' },
  {
    name: 'bun',
    file: 'bun/server',
    serve: 'module.default.fetch(request, { requestIP: () => ({ address: incoming.socket.remoteAddress }) })',
  },
  {
    name: 'deno',
    file: 'deno/server',
    serve: 'module.default.fetch(request, { remoteAddr: { hostname: incoming.socket.remoteAddress } })',
  },
  { name: 'workers', file: 'workers/worker', serve: 'module.default.fetch(request, env)' },
  { name: 'workers', file: 'workers/hono', serve: 'module.default.fetch(request, env)' },
  { name: 'next', file: 'next/app/messages/route', serve: 'module.GET(request)' },
] as const;

let issuer: ListeningIssuer;
let folder: string;
beforeAll(async () => {
  // The code of the pages, with the packed package.
  folder = join((await buildPages()).folder, 'examples');
  issuer = await createTestIssuer({ audience }).listen();
  await writeFile(join(folder, 'ca.pem'), issuer.ca);
});
afterAll(async () => {
  await issuer?.close();
});

/** Starts an example like a user, and waits until it responds. */
async function start(file: string, serve: string | undefined): Promise<{ child: ChildProcess; origin: string }> {
  const port = await findFreePort();
  const path = join(folder, `${file}.js`);
  const program = serve === undefined ? [path] : ['--input-type=module', '--eval', serveModule(serve), path];
  const child = spawn(process.execPath, program, {
    cwd: folder,
    env: {
      PATH: process.env['PATH'],
      ISSUER: issuer.issuer,
      PORT: String(port),
      AUDIENCE: audience,
      NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem'),
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let complaint = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  const origin = `http://localhost:${port}`;
  for (let attempt = 0; attempt < 600; attempt++) {
    if (child.exitCode !== null) throw new Error(`${file} has ended: ${complaint}`);
    const answered = await fetch(origin).catch(() => undefined);
    if (answered !== undefined) return { child, origin };
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  child.kill();
  throw new Error(`${file} does not respond: ${complaint}`);
}

it('every example is started here, except those with tests of their own', async () => {
  const others = ['dpop', 'mcp', 'recipes', 'testing', 'node_modules', 'test'];
  const folders = await readdir(join(root, 'examples'), { withFileTypes: true });
  const names = folders.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  expect([...new Set([...examples.map(({ name }) => name), ...others])].toSorted()).toEqual(names.toSorted());
});

describe.each(examples)('$name: $file', ({ name, file, ...how }) => {
  let running: Awaited<ReturnType<typeof start>>;
  beforeAll(async () => {
    running = await start(file, 'serve' in how ? how.serve : undefined);
    // Some make their resource server with the first call. A busy machine may need more than one to fetch the keys.
    while ((await call(issuer.headers()))[0] === 503) await new Promise((resolve) => setTimeout(resolve, 50));
    await passStart();
  });
  afterAll(async () => {
    running.child.kill();
    await once(running.child, 'exit');
  });

  const url = (): string => `${running.origin}/messages`;
  const call = async (headers: Readonly<Record<string, string>> = {}) => {
    const response = await fetch(url(), { headers });
    return [response.status, await response.json()];
  };

  it('a token with the scope → 200', async () => {
    const headers = issuer.headers({ sub: 'alice', scope: 'read:messages' });
    expect(await call(headers)).toEqual([200, { reader: 'alice' }]);
  });

  it('a bound token with its proof → 200', async () => {
    const headers = issuer.dpopClient().headers({ url: url(), scope: 'read:messages' });
    expect(await call(headers)).toEqual([200, { reader: 'test-subject' }]);
  });

  it('no token → 401, and a token without the scope → 403', async () => {
    expect(await call()).toMatchObject([401, { detail: { error: 'unauthorized' } }]);
    expect(await call(issuer.headers())).toMatchObject([403, { detail: { error: 'insufficient_scope' } }]);
  });

  it('doctor, as a client of it → exit 0, and the credentials reach it', async () => {
    const environment = { ISSUER: issuer.issuer, IDP_AUDIENCE: audience, NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') };
    const { status, findings } = await runDoctor(['--from-outside', url()], environment);
    expect([status, findings.filter(({ level }) => level === 'fail' || level === 'unknown')]).toEqual([0, []]);
    expect(findings).toContainEqual(expect.objectContaining({ check: 'url', level: 'ok' }));
  });

  // A file of Next.js has no paths that it leaves open by itself.
  if (name === 'next') return;
  it('open route → 200 without a token', async () =>
    expect(await (await fetch(running.origin)).text()).toBe('open to all'));
});
