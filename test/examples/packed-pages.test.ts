import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { posix } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { completeBlock, installPacked, type PackedPackage } from '../support/packed-package.ts';
import { type CodeBlock, pages, readCodeBlocks, referencePage } from '../support/pages.ts';

const run = promisify(execFile);
// The reference has declarations that the compiler wrote.
const blocks = pages.filter((page) => page !== referencePage).flatMap(readCodeBlocks);
const scripts = blocks.filter(({ language, fragment }) => /^(?:ts|js)$/.test(language) && fragment === undefined);

/** Where a block is written: files of a page by their names, everything else by its line. */
function placeOf({ page, line, language, file }: CodeBlock): string {
  const folder = posix.join('pages', page.replace(/\.md$/, ''));
  return file === undefined
    ? posix.join(folder, `line-${line}.${language}`)
    : posix.join(folder, file.replace(/^examples\//, ''));
}

let packed: PackedPackage;
beforeAll(async () => {
  packed = await installPacked('pages');
  for (const script of scripts) {
    await packed.write(placeOf(script), script.file === undefined ? completeBlock(script) : script.text);
  }
}, 120_000);

describe('code of the pages, in an empty folder with the packed package', () => {
  it('compiles, strictly', async () => {
    expect(scripts.length).toBeGreaterThan(60);
    expect(await packed.compile()).toEqual([]);
  }, 120_000);

  it('modules of the recipes load, and give what their text says that they export', async () => {
    const recipes = scripts.flatMap(({ file = '', text, ...rest }) =>
      file.startsWith('examples/recipes/') ? [{ file, text, place: placeOf({ file, text, ...rest }) }] : [],
    );
    expect(recipes.length).toBeGreaterThan(10);
    const exported = Object.fromEntries(
      recipes.map(({ text, place }) => [
        `./.built/${place.replace(/\.ts$/, '.js')}`,
        [...text.matchAll(/^export (?:async )?(?:function|const) (\w+)/gm)].map(([, name]) => name).toSorted(),
      ]),
    );
    const program = `
      const modules = JSON.parse(process.argv[2]);
      const given = {};
      for (const path of Object.keys(modules)) given[path] = Object.keys(await import(path)).toSorted();
      console.log(JSON.stringify(given));
    `;
    await packed.write('load.js', program);
    const { stdout } = await run(process.execPath, ['load.js', JSON.stringify(exported)], { cwd: packed.folder });
    expect(JSON.parse(stdout)).toEqual(exported);
  }, 60_000);
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

  it('judges a call as import does', async () => {
    const program = `
      const { createResourceServer } = require('portcullis');
      const { createTestIssuer } = require('portcullis/testing');
      const express = require('express');
      const { accessOf, createAuthorize } = require('portcullis/express');
      const issuer = createTestIssuer();
      const authorize = createAuthorize(createResourceServer({ issuers: [issuer], audience: issuer.audience }));
      const app = express().get('/', authorize({ scopes: ['a'] }), (req, res) => res.send(accessOf(req).claims.sub));
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
import { createProtect } from 'portcullis/express';
export const protect = createProtect(createResourceServer({ issuer: 'idp.example', audience: 'https://api.example/' }));
`,
    );
    expect(await other.compile()).toEqual([]);
  }, 60_000);
});
