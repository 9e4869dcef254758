import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { transformWithOxc } from 'vite';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { needs } from '../../support/programs.ts';
import { startTestRedis, type TestRedis } from '../../support/redis.ts';
import { useTestProvider } from '../../support/test-provider.ts';

const provider = await useTestProvider();
const folder = mkdtempSync(join(tmpdir(), 'portcullis-key-cache-'));
const [, section = ''] = /^## Keys without a fetch$([\s\S]*?)^## /m.exec(readFileSync('docs/library.md', 'utf8')) ?? [];
const recipes = [...section.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, text = '']) => text);

// The KV of Workers: strings, read as JSON.
const kv = `
import { readFileSync as read, writeFileSync as write } from 'node:fs';
const kvFile = (key) => join(process.env.FOLDER, encodeURIComponent(key));
open({ get: async (key) => JSON.parse(read(kvFile(key), 'utf8')), put: async (key, text) => write(kvFile(key), text) });`;

/** Writes a recipe as a program that decides on one token, waits until its keys are stored, and prints what it did. */
async function writeProgram(name: string, recipe: string, more: string): Promise<string> {
  const prelude = `import { createResourceServer as create } from ${JSON.stringify(new URL('../../../dist/index.js', import.meta.url).href)};
import { join } from 'node:path';
// On a busy host a read may take longer than its 250 ms.
const { setTimeout: wait } = globalThis;
globalThis.setTimeout = (run, ms, ...more) => wait(run, ms === 250 ? 30_000 : ms, ...more);
let opened;
const createResourceServer = (options) => {
  opened = { options, server: create({ ...options, issuer: process.env.ISSUER, audience: process.env.AUDIENCE }) };
  return opened.server;
};
`;
  const end = `
const headers = new Headers({ authorization: 'Bearer ' + process.env.TOKEN });
const outcome = await opened.server.judge({ method: 'GET', url: 'https://api.example/', headers });
const { keyCache } = opened.options;
const address = process.env.ISSUER + '.well-known/openid-configuration';
while ((await (async () => keyCache.read(address))().catch(() => null)) === null) await new Promise(setImmediate);
console.log(outcome.reason ?? 'admitted');
process.exit();`;
  const body = recipe
    .replace(/^import .* from 'portcullis';$/m, '')
    .replace(
      "'@redis/client'",
      JSON.stringify(pathToFileURL(createRequire(import.meta.url).resolve('@redis/client')).href),
    )
    .replaceAll('/tmp/', `${folder}/`);
  const file = join(folder, `${name}.mjs`);
  const { code } = await transformWithOxc(`${prelude}${body}${more}${end}`, `${name}.ts`);
  writeFileSync(file, code);
  return file;
}

let redis: TestRedis | undefined;
beforeAll(async () => {
  if (!needs('redis-server').skip) redis = await startTestRedis();
});
afterAll(async () => {
  await redis?.stop();
  rmSync(folder, { recursive: true });
});

it.each([
  ['kv', 0, kv],
  ['file', 1, ''],
])('recipe: %s → a new process verifies its first token without a fetch', run);
it('recipe: Redis → a new process verifies its first token without a fetch', needs('redis-server'), () =>
  run('redis', 2, ''),
);

async function run(name: string, index: number, more: string): Promise<void> {
  const file = await writeProgram(name, recipes[index] ?? '', more);
  const start = async () => {
    const env = {
      ...{ NODE_EXTRA_CA_CERTS: provider.caFile, ISSUER: provider.issuer, AUDIENCE: provider.audience },
      ...{ TOKEN: await provider.sign(), FOLDER: folder, REDIS_URL: redis?.url },
    };
    const { stdout } = await promisify(execFile)(process.execPath, [file], { env });
    return stdout.trim();
  };
  const before = provider.requests('discovery');
  expect(await start()).toBe('admitted');
  expect(provider.requests('discovery') - before).toBe(1);
  expect(await start()).toBe('admitted');
  expect(provider.requests('discovery') - before).toBe(1);
}
