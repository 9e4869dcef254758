// Makes what is shipped, in dist/: the code of the sources in few files, so that a process starts sooner, and the types of
// build/. There is a file for each entry point, and one for each part that several of them share or that is loaded on demand.
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';
import { rolldown } from 'rolldown';

const { exports, imports, bin } = JSON.parse(readFileSync('package.json', 'utf8'));
const modules = Object.values(exports).flatMap(({ default: path }) => path ?? []);
const ownImports = Object.entries(imports).filter(([, { webpack }]) => webpack !== undefined);
const replacements = ownImports.map(([, paths]) => paths.default);
const entries = [...modules, ...replacements, ...Object.values(bin)].map((path) =>
  path.replace(/^(?:\.\/)?dist\//, '').replace(/\.js$/, ''),
);

const bundle = await rolldown({
  input: Object.fromEntries(entries.map((entry) => [entry, `src/${entry}.ts`])),
  platform: 'node',
  external: /^[^./]/, // packages, and what Node brings
  plugins: [
    {
      name: 'own imports',
      resolveId(path, importer) {
        const [name] =
          ownImports.find(([, paths]) => importer && basename(path, '.ts') === basename(paths.default, '.js')) ?? [];
        return name && { id: name, external: true };
      },
    },
  ],
});
await bundle.write({
  dir: 'dist',
  format: 'esm',
  // Comments are for readers of the sources; declarations keep theirs.
  comments: false,
  entryFileNames: '[name].js',
  chunkFileNames: 'parts/[name].js',
});
await bundle.close();

// webpack warns about an optional package that is not installed, unless it leaves the import to Node.
for (const [, paths] of ownImports) {
  const text = readFileSync(paths.default, 'utf8');
  writeFileSync(paths.webpack, text.replace(/\bimport\(/g, 'import(/* webpackIgnore: true */ '));
}

/** Declarations that an entry point needs, by way of others. */
const declarations = new Set(entries.map((entry) => `${entry}.d.ts`));
for (const path of declarations) {
  const text = readFileSync(join('build', path), 'utf8');
  for (const [, from] of text.matchAll(/(?:from |import\()["'](\.[^"']+)\.[jt]s["']/g)) {
    declarations.add(`${posix.join(posix.dirname(path), from)}.d.ts`);
  }
  mkdirSync(join('dist', dirname(path)), { recursive: true });
  copyFileSync(join('build', path), join('dist', path));
}

// The page of the console runs in a browser. `dev` has a page with a view to try requests.
const page = await rolldown({ input: { page: 'src/console/page/main.ts', dev: 'src/dev/page/page.ts' } });
await page.write({
  dir: 'dist/console',
  format: 'esm',
  comments: false,
  entryFileNames: '[name].js',
  chunkFileNames: 'shared-[name].js',
  // The licences require it.
  postBanner: `/*!
 * With htm ${JSON.parse(readFileSync('node_modules/htm/package.json', 'utf8')).version} and Preact, from the package htm (htm/preact/standalone.mjs).
 * htm: Copyright 2018 Google Inc. Apache License 2.0, https://www.apache.org/licenses/LICENSE-2.0
 * Preact: Copyright (c) 2015-present Jason Miller. MIT License:
 *
 * Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation
 * files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy,
 * modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
 * Software is furnished to do so, subject to the following conditions: The above copyright notice and this permission notice
 * shall be included in all copies or substantial portions of the Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY
 * OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR
 * PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
 * LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR
 * THE USE OR OTHER DEALINGS IN THE SOFTWARE.
 */`,
});
await page.close();

// npx links the bin of a clone once, and sets its mode only then: after the next build it could not start it.
chmodSync('dist/cli/main.js', 0o755);

// For portcullis_build_info. An image is built without .git: then SOURCE_COMMIT has it.
writeFileSync('dist/commit', `${process.env.SOURCE_COMMIT || readCommit()}\n`);

function readCommit() {
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return ''; // a tarball of the sources
  }
}
