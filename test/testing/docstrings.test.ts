import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));

/** What stands around the examples. */
const prelude = `
import { equal } from 'node:assert/strict';
import { test } from 'node:test';
import type { Hono } from 'hono';
import { createIntrospection, createKeySet, createResourceServer, type ResourceServer } from 'portcullis';
import { createTestIssuer, type DpopClient, expectRefused, type ListeningIssuer, type TestIssuer, tokenFlaws } from 'portcullis/testing';
declare const app: Hono;
declare const client: DpopClient;
declare const issuer: TestIssuer;
declare const server: ResourceServer;
declare const tls: ListeningIssuer;
`;

async function readExamples(): Promise<readonly string[]> {
  const folder = join(root, 'src/testing');
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.ts'));
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  return texts.flatMap((text) =>
    [...text.matchAll(/@example\n((?: *\* .*\n)+?) *\*\//g)].map(([, lines = '']) => lines.replace(/^ *\* /gm, '')),
  );
}

it('examples of docstrings compile', async () => {
  const examples = await readExamples();
  expect(examples.length).toBeGreaterThan(5);
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-docstrings-'));
  try {
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    const bodies = examples.map((text, index) => `export async function example${index}() {\n${text}}\n`);
    await writeFile(join(folder, 'examples.ts'), `${prelude}${bodies.join('')}`);
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    const paths = {
      portcullis: [join(root, 'src/index.ts')],
      'portcullis/testing': [join(root, 'src/testing/index.ts')],
    };
    const compilerOptions = { noUnusedLocals: false, paths };
    const settings = { extends: join(root, 'tsconfig.json'), compilerOptions, include: [], files: ['examples.ts'] };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(settings));
    const compiler = [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder];
    const outcome = await run(process.execPath, compiler).then(
      ({ stdout }) => ({ code: 0, stdout }),
      ({ code, stdout }) => ({ code, stdout }),
    );
    expect(outcome).toEqual({ code: 0, stdout: '' });
  } finally {
    await rm(folder, { recursive: true });
  }
});
