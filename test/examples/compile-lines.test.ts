import { execFile } from 'node:child_process';
import { copyFile, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { installPacked } from '../support/packed-package.ts';
import { readCodeBlocks } from '../support/pages.ts';

const run = promisify(execFile);
const compiler = resolve('node_modules/typescript/bin/tsc');

it.each([
  // Pages of the others link to it.
  ['docs/getting-started.md', ['express', 'fastify', 'fetch', 'hono', 'node']],
  ['docs/frameworks/nest.md', ['nest']],
])('the tsconfig.json of %s → compiles %s', async (page, examples) => {
  const { folder, write } = await installPacked('compile');
  await write('tsconfig.json', readCodeBlocks(page).find(({ language }) => language === 'json')?.text ?? '');
  for (const name of examples) await copyFile(`examples/${name}/server.ts`, join(folder, `${name}.ts`));
  const { stdout } = await run(process.execPath, [compiler], { cwd: folder }).catch((error) => error);
  expect(stdout).toBe('');
  for (const name of examples) expect(await readFile(join(folder, `${name}.js`), 'utf8')).toContain("from 'portcullis");
});
