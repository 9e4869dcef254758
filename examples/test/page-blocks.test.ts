import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type NamedIssuers, startNamedIssuers } from '../../test/support/named-issuers.ts';
import { buildPages, placeOf, scripts } from '../../test/support/packed-pages.ts';
import { needs } from '../../test/support/programs.ts';
import { startTestRedis } from '../../test/support/redis.ts';

/** The result of a module: the port of its application, if it has one, or its error. */
interface Outcome {
  readonly path: string;
  readonly port?: number;
  readonly error?: string;
}

const audience = 'https://api.example/';
const claims = { scope: 'read:messages', sub: 'alice' };
const auth0 = { host: 'tenant.eu.auth0.com', aud: 'https://api.example.com/', claims };
const idp = { host: 'idp.example', aud: audience, claims };
const tenant = { ...idp, claims: { scope: 'read:tenant', tenant: 'acme' } };

/** A call to an application of a page. */
interface Call {
  readonly page: string;
  readonly path: string;
  /** Default: 200. */
  readonly status?: number;
  readonly answer: unknown;
  /** Issuer, audience and claims of the required token. Default: no token. */
  readonly token?: { readonly host: string; readonly aud: string; readonly claims: object };
}

const answer = { reader: 'alice' };
/** One call for each application, in the order of the pages. */
const calls: readonly Call[] = [
  { page: 'README.md', path: '/messages', token: auth0, answer: { sub: 'alice' } },
  { page: 'AGENTS.md', path: '/messages', token: idp, answer },
  { page: 'AGENTS.md', path: '/messages', token: idp, answer },
  { page: 'AGENTS.md', path: '/messages', token: idp, answer },
  { page: 'AGENTS.md', path: '/messages', status: 401, answer: {} },
  { page: 'docs/frameworks/express.md', path: '/api/messages/7', token: idp, answer: { id: '7' } },
  { page: 'docs/frameworks/fastify.md', path: '/api/messages/7', token: idp, answer: { id: '7' } },
  { page: 'docs/frameworks/hono.md', path: '/api/messages/7', token: idp, answer: { id: '7' } },
  { page: 'docs/library.md', path: '/messages', token: idp, answer },
  { page: 'docs/library.md', path: '/tenant', token: tenant, answer: 'acme' },
  { page: 'docs/library.md', path: '/.well-known/oauth-protected-resource', answer: { resource: audience } },
  // In the order of the page: Express, Fastify, Hono, Passport, auth0-fastapi-api.
  ...Array.from({ length: 5 }, () => ({ page: 'docs/migrate.md', path: '/messages', token: auth0, answer })),
  { page: 'docs/other-proofs.md', path: '/backchannel-logout', status: 405, answer: {} },
];

/** Code of other libraries, for comparison, and of njs, which the tests of the gate's assertion run. */
const ofOthers = scripts.filter(({ text }) => text.includes("from 'hono/jwk'") || text.includes("'/etc/nginx/"));
const needsRedis = scripts.filter(({ text }) => text.includes('REDIS_URL'));
const modules = scripts.filter((script) => script.file === undefined && !ofOthers.includes(script));
const pathOf = (script: (typeof scripts)[number]): string => `./${placeOf(script).replace(/\.ts$/, '.js')}`;

const { publicKey, privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});

let issuers: NamedIssuers;
let folder: string;
let child: ChildProcess | undefined;
const outcomes = new Map<string, Outcome>();

/** Runs modules in one process, and gives what became of each. */
async function run(paths: readonly string[], more: Readonly<Record<string, string>> = {}): Promise<ChildProcess> {
  const running = spawn(process.execPath, ['page-runner.js', ...paths], {
    cwd: folder,
    env: {
      PATH: process.env['PATH'],
      HTTPS_PROXY: issuers.proxy,
      HTTP_PROXY: issuers.proxy,
      NODE_EXTRA_CA_CERTS: join(folder, 'named-issuers.pem'),
      CLIENT_SECRET: 'of the pages',
      AUDIT_SECRET: 'x'.repeat(32),
      ...more,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let complaint = '';
  running.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  const wanted = new Set(paths);
  for await (const line of createInterface(running.stdout)) {
    const outcome: Outcome = line.startsWith('{"path"') ? JSON.parse(line) : { path: '' };
    outcomes.set(outcome.path, outcome);
    wanted.delete(outcome.path);
    if (wanted.size === 0) return running;
  }
  throw new Error(`${[...wanted].join(', ')} did not run: ${complaint}`);
}

async function stop(running: ChildProcess | undefined): Promise<void> {
  if (running === undefined || running.exitCode !== null) return;
  running.kill('SIGKILL'); // a page shows what SIGTERM may do instead
  await once(running, 'exit');
}

beforeAll(async () => {
  ({ folder } = await buildPages());
  issuers = await startNamedIssuers([idp.host, auth0.host], audience);
  await copyFile('examples/test/page-runner.js', join(folder, 'page-runner.js'));
  await writeFile(join(folder, 'named-issuers.pem'), issuers.ca);
  // Two pages show how keys in PEM are read.
  await writeFile(join(folder, 'public-key.pem'), publicKey);
  for (const name of ['current.pem', 'previous.pem']) await writeFile(join(folder, name), privateKey);
  child = await run(modules.filter((script) => !needsRedis.includes(script)).map(pathOf));
});
afterAll(async () => {
  await stop(child);
  await issuers?.close();
});

describe('blocks of code on the pages, run with the packed package', () => {
  it('every one compiles, strictly, and runs', async () => {
    expect((await buildPages()).errors).toEqual([]);
    expect(modules.length).toBeGreaterThan(35);
    expect([...outcomes.values()].filter(({ error }) => error !== undefined)).toEqual([]);
  });

  it('with Redis, where a page has it', needs('redis-server'), async () => {
    const redis = await startTestRedis();
    try {
      await stop(await run(needsRedis.map(pathOf), { REDIS_URL: redis.url }));
      expect(needsRedis.map((script) => outcomes.get(pathOf(script))?.error)).toEqual(needsRedis.map(() => undefined));
    } finally {
      await redis.stop();
    }
  });
});

/** The applications of the pages, in order, except one that its page calls. */
function served(): readonly (Outcome & { readonly page: string })[] {
  return modules.flatMap((script) => {
    const outcome = outcomes.get(pathOf(script));
    return outcome?.port === undefined || script.page === 'docs/testing.md' ? [] : [{ ...outcome, page: script.page }];
  });
}

describe('applications on the pages', () => {
  it('every one is called', () => expect(served().map(({ page }) => page)).toEqual(calls.map(({ page }) => page)));

  it.each(calls.map((call, index) => ({ index, ...call })))(
    '$page: $path',
    async ({ index, path, status = 200, answer, token }) => {
      const url = `http://127.0.0.1:${served()[index]?.port}${path}`;
      const call = async (headers: Readonly<Record<string, string>>) => {
        const response = await fetch(url, { headers });
        const text = await response.text();
        return [response.status, text.startsWith('{') ? JSON.parse(text) : text];
      };
      if (token === undefined) return expect(await call({})).toMatchObject([status, answer]);
      const { host, aud } = token;
      const headers = (more: object) => issuers.of(host).headers({ aud, ...more });
      // A busy host may not fetch the keys in time: then the response is 503, and the client repeats the request.
      while ((await call(headers({})))[0] === 503) await new Promise((resolve) => setTimeout(resolve, 50));
      expect(await call({})).toMatchObject([401, { detail: { error: 'unauthorized' } }]);
      expect(await call(headers({}))).toMatchObject([403, { detail: { error: 'insufficient_scope' } }]);
      expect(await call(headers(token.claims))).toMatchObject([200, answer]);
    },
  );
});
