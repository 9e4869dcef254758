import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { transformWithOxc } from 'vite';
import { afterAll, expect, it } from 'vitest';
import { needs } from '../../support/programs.ts';
import { startTestRedis } from '../../support/redis.ts';
import { useTestProvider } from '../../support/test-provider.ts';

const provider = await useTestProvider();
const folder = mkdtempSync(join(tmpdir(), 'portcullis-key-cache-'));
afterAll(() => rmSync(folder, { recursive: true }));
const [, section = ''] = /^## Keys without a fetch$([\s\S]*?)^## /m.exec(readFileSync('docs/library.md', 'utf8')) ?? [];
const recipes = [...section.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, text = '']) => text);
const library = JSON.stringify(new URL('../../../dist/index.js', import.meta.url).href);
const redisClient = JSON.stringify(pathToFileURL(createRequire(import.meta.url).resolve('@redis/client')).href);

const before = `import { createResourceServer as create } from ${library};
// On a busy host a read may take longer than its 250 ms.
const { setTimeout: wait } = globalThis;
globalThis.setTimeout = (run, ms, ...more) => wait(run, ms === 250 ? 30_000 : ms, ...more);
const { ISSUER: issuer, AUDIENCE: audience, TOKEN, FOLDER } = process.env;
let opened;
const createResourceServer = ({ keyCache }) => {
  opened = { keyCache, server: create({ keyCache, issuer, audience }) };
  return opened.server;
};`;
// The KV of Workers: strings, read as JSON.
const openKv = `import * as fs from 'node:fs';
const place = (key) => FOLDER + '/' + encodeURIComponent(key);
open({ get: async (key) => JSON.parse(fs.readFileSync(place(key))), put: async (key, text) => fs.writeFileSync(place(key), text) }, () => {});`;
// Until the keys are stored.
const after = `const headers = new Headers({ authorization: 'Bearer ' + TOKEN });
const outcome = await opened.server.judge({ method: 'GET', url: 'https://api.example/', headers });
const read = async () => opened.keyCache.read(issuer + '.well-known/openid-configuration');
while ((await read().catch(() => null)) === null) await new Promise(setImmediate);
console.log(outcome.reason ?? 'admitted');
process.exit();`;

it.each([
  { name: 'Workers KV', index: 0, more: openKv },
  { name: 'a file', index: 1, more: '' },
])('recipe of $name → a new process verifies its first token without a fetch', ({ index, more }) => run(index, more));

it('recipe of Redis → a new process verifies its first token without a fetch', needs('redis-server'), async () => {
  const redis = await startTestRedis();
  await run(2, '', redis.url).finally(redis.stop);
});

async function run(index: number, more: string, REDIS_URL = ''): Promise<void> {
  const recipe = recipes[index]?.replace(/^import .* from 'portcullis';$/m, '').replaceAll('/tmp/', `${folder}/`);
  const program = [before, recipe?.replace("'@redis/client'", redisClient), more, after].join('\n');
  const file = join(folder, `${index}.mjs`);
  writeFileSync(file, (await transformWithOxc(program, 'recipe.ts')).code);
  const NODE_EXTRA_CA_CERTS = provider.caFile;
  const { issuer: ISSUER, audience: AUDIENCE } = provider;
  const fetches = provider.requests('discovery');
  for (let process = 0; process < 2; process++) {
    const env = { NODE_EXTRA_CA_CERTS, ISSUER, AUDIENCE, TOKEN: await provider.sign(), FOLDER: folder, REDIS_URL };
    expect((await promisify(execFile)(globalThis.process.execPath, [file], { env })).stdout).toBe('admitted\n');
    expect(provider.requests('discovery') - fetches).toBe(1);
  }
}
