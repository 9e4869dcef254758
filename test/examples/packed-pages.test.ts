import { execFile } from 'node:child_process';
import { readdir, readFile, rm } from 'node:fs/promises';
import { posix } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { installBare, installPacked, type PackedPackage } from '../support/packed-package.ts';
import { scripts } from '../support/packed-pages.ts';

const run = promisify(execFile);

let packed: PackedPackage;
beforeAll(async () => {
  packed = await installPacked('required');
});

it('every file of code below examples is on a page', async () => {
  const files = await readdir('examples', { recursive: true });
  const onPages = scripts.flatMap(({ file }) => file ?? []);
  expect(onPages.toSorted()).toEqual(
    files
      .map((file) => `examples/${file.replaceAll('\\', '/')}`)
      // For this repository only: its packages, tests and settings.
      .filter((file) => /\.c?[jt]s$/.test(file) && !/^examples\/(?:node_modules|test)\/|\.config\.ts$/.test(file))
      .toSorted(),
  );
});

it('every link of a page of the package → a file of the package', async () => {
  const root = posix.join(packed.folder.replaceAll('\\', '/'), '../node_modules/portcullis');
  const names = (await readdir(root, { recursive: true })).map((name) => name.replaceAll('\\', '/'));
  const pages = names.filter((name) => /\.md$/.test(name) && !/^(?:node_modules|dist)\//.test(name));
  expect(pages).toContain('AGENTS.md');
  expect(pages).toContain('skills/portcullis/SKILL.md');
  const dead: string[] = [];
  for (const page of pages) {
    // The README is shown by the registry, which resolves its links.
    const text =
      page === 'README.md' ? '' : (await readFile(posix.join(root, page), 'utf8')).replace(/^```[\s\S]*?^```/gm, '');
    for (const [, target = ''] of text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)) {
      if (!names.includes(posix.join(posix.dirname(page), target))) dead.push(`${page}: ${target}`);
    }
  }
  expect(dead).toEqual([]);
});

it('declarations of the package need no optional package, and show claims by their names', async () => {
  const bare = await installBare();
  try {
    const entries = ['', '/explain', '/fetch', '/node', '/providers', '/testing'];
    const lines = entries.map((entry, index) => `export * as entry${index} from 'portcullis${entry}';`);
    await bare.write('index.ts', lines.join('\n'));
    // What the compiler says of a wrong type is what an editor shows.
    const wrong = `import { createResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/fetch';
const protect = createProtect(createResourceServer({ issuer: 'idp.example', audience: 'https://api.example/' }));
protect({ scopes: ['read:messages'] }, (_request, access) => {
  const shown: number = access;
  return new Response(String(shown));
});
`;
    await bare.write('wrong.ts', wrong);
    expect(await bare.compile('checked')).toEqual([
      expect.stringMatching(/wrong\.ts.*: Type 'Access<Claims>' is not assignable to type 'number'\./),
    ]);
  } finally {
    await rm(bare.folder, { recursive: true });
  }
});

describe('require()', () => {
  it('every entry point is loaded by CommonJS, without a flag', async () => {
    const { exports } = JSON.parse(await readFile('package.json', 'utf8')) as { readonly exports: object }; // ours
    const entries = Object.keys(exports).filter((subpath) => !subpath.endsWith('.json'));
    const names = entries.map((subpath) => posix.join('portcullis', subpath));
    const program = `
      const names = process.argv.slice(2);
      process.stdout.write(JSON.stringify(names.filter((name) => Object.keys(require(name)).length > 0)));
    `;
    await packed.write('load.cjs', program);
    const { stdout } = await run(process.execPath, ['load.cjs', ...names], { cwd: packed.folder });
    expect(JSON.parse(stdout)).toEqual(names);
  });

  it('has types of each entry point for compilers without exports (moduleResolution node10)', async () => {
    const { exports, types, typesVersions } = JSON.parse(await readFile('package.json', 'utf8'));
    const typed = Object.entries<{ readonly types?: string }>(exports).flatMap(([subpath, entry]) =>
      entry.types === undefined ? [] : [[subpath.replace('./', ''), entry.types] as const],
    );
    const named = Object.entries<readonly string[]>(typesVersions['*']).map(([name, [path]]) => [name, path]);
    expect([['.', types], ...named]).toEqual(typed);
  });

  it('authorizes a request like import', async () => {
    const program = `
      const { createResourceServer } = require('portcullis');
      const { createTestIssuer } = require('portcullis/testing');
      const express = require('express');
      const { createAuthorize } = require('portcullis/express');
      const issuer = createTestIssuer();
      const authorize = createAuthorize(createResourceServer({ issuers: [issuer], audience: issuer.audience }));
      const app = express().get('/', authorize({ scopes: ['a'] }), (req, res) => res.send(authorize.accessOf(req).claims.sub));
      const server = app.listen(0, '127.0.0.1', async () => {
        const url = 'http://127.0.0.1:' + server.address().port;
        const good = await fetch(url, { headers: issuer.headers({ sub: 'alice', scope: 'a' }) });
        const refused = await fetch(url);
        console.log(await good.text(), refused.status);
        server.close();
      });
    `;
    await packed.write('call.cjs', program);
    const { stdout, stderr } = await run(process.execPath, ['call.cjs'], { cwd: packed.folder });
    expect([stdout.trim(), stderr]).toEqual(['alice 401', expect.not.stringContaining('Error')]);
  });

  it('has types: a CommonJS module of TypeScript compiles with nodenext', async () => {
    const other = await installPacked('commonjs');
    await other.write('package.json', JSON.stringify({ type: 'commonjs' }));
    await other.write(
      'index.cts',
      `import { createResourceServer } from 'portcullis';
import { createAuthorize } from 'portcullis/express';
export const authorize = createAuthorize(createResourceServer({ issuer: 'idp.example', audience: 'https://api.example/' }));
`,
    );
    expect(await other.compile()).toEqual([]);
  });
});
