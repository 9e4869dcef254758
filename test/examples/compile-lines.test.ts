import { execFile } from 'node:child_process';
import { copyFile, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { installPacked } from '../support/packed-package.ts';

const run = promisify(execFile);
const compiler = resolve('node_modules/typescript/bin/tsc');
/** Pages, and the files they show. */
const pages: readonly (readonly [page: string, example: string])[] = [
  ['docs/local-provider.md', 'examples/local-provider/server.ts'],
  ...['express', 'fastify', 'fetch', 'hono', 'node'].map(
    (name) => [`docs/frameworks/${name}.md`, `examples/${name}/server.ts`] as const,
  ),
];

/** Compiles a file like a reader of the page, and lists the errors. */
async function compile(example: string, args: readonly string[], project: string): Promise<string> {
  const { folder, write } = await installPacked('compile');
  await copyFile(example, join(folder, 'server.ts'));
  await write('tsconfig.json', project);
  return run(process.execPath, [compiler, ...args], { cwd: folder }).then(
    () => readFile(join(folder, 'server.js'), 'utf8'),
    ({ stdout }: { readonly stdout: string }) => stdout,
  );
}

describe('commands of the pages', () => {
  it.each(pages)('%s: its line compiles %s, next to a tsconfig.json too', async (page, example) => {
    const [, line = ''] = /npx tsc (--ignoreConfig [^`]*?server\.ts)/.exec(await readFile(page, 'utf8')) ?? [];
    expect(await compile(example, line.split(/\s+/), '{}')).toContain("from 'portcullis'");
  });

  it('docs/frameworks/nest.md: its tsconfig.json compiles its example', async () => {
    const [, project = ''] = /```json\n(.*?)```/s.exec(await readFile('docs/frameworks/nest.md', 'utf8')) ?? [];
    expect(await compile('examples/nest/server.ts', [], project)).toContain("from 'portcullis/nest'");
  });
});
