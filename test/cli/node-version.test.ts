import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { refuseRuntime } from '../../src/cli/node-version.ts';

const run = promisify(execFile);
const main = 'dist/cli/main.js';

describe('an old Node', () => {
  it.each(['18.20.8', '16.0.0', '20.18.9', '19.9.0'])('%s → one line that names the version', (version) =>
    expect(refuseRuntime(version)).toBe(`portcullis needs Node 20.19.0 or newer; this is Node ${version}.`),
  );

  it.each(['20.19.0', '20.20.2', '22.0.0', '26.1.0'])('%s → nothing to say', (version) =>
    expect(refuseRuntime(version)).toBeUndefined(),
  );

  it.each(['Bun', 'Deno'])('%s, with any version → the library is named', (name) =>
    expect(refuseRuntime('24.3.0', { [name]: {} })).toBe(
      `portcullis runs its commands on Node only. On ${name}, use the library.`,
    ),
  );

  it('is the one that package.json says', () => {
    const { engines } = JSON.parse(readFileSync('package.json', 'utf8'));
    expect(refuseRuntime('1.0.0')).toContain(` ${engines.node.replace('>=', '')} `);
  });

  it.each(['serve', '--version', 'token'])(
    'portcullis %s on it → that line, 69, and nothing else is loaded',
    async (word) => {
      const versions =
        "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.8' } })";
      const words = ['--import', `data:text/javascript,${encodeURIComponent(versions)}`, main, word];
      const ended = await run(process.execPath, words, { env: { PATH: process.env['PATH'] } }).catch((error) => error);
      expect(ended).toMatchObject({
        code: 69,
        stdout: '',
        stderr: 'portcullis needs Node 20.19.0 or newer; this is Node 18.20.8.\n',
      });
    },
  );

  /** The files that are parsed before the check runs. */
  const collect = (file: string, found = new Set<string>()): ReadonlySet<string> => {
    found.add(file);
    for (const [, from = ''] of readFileSync(file, 'utf8').matchAll(/^import .* from "(\.[^"]+)";$/gm)) {
      const path = posix.join(posix.dirname(file), from);
      if (!found.has(path)) collect(path, found);
    }
    return found;
  };

  it('parses what is loaded before the check: syntax of ECMAScript 2022, and modules of Node', async () => {
    const files = [...collect(main)];
    expect(files.length).toBeGreaterThan(1);
    for (const file of files) {
      const modules = [...readFileSync(file, 'utf8').matchAll(/^import .* from "([^."][^"]*)";$/gm)].map(
        ([, name]) => name,
      );
      const ofOldNode = ['node:cluster', 'node:module', 'node:path'];
      expect(modules.filter((name = '') => !ofOldNode.includes(name))).toEqual([]);
    }
    // The parser that Node brings along, told to take nothing newer.
    const parse = `
      const { parse } = require('internal/deps/acorn/acorn/dist/acorn');
      const { readFileSync } = require('node:fs');
      for (const file of process.argv.slice(1)) {
        parse(readFileSync(file, 'utf8'), { ecmaVersion: 2022, sourceType: 'module', allowHashBang: true });
      }
    `;
    await run(process.execPath, ['--expose-internals', '--no-warnings', '--eval', parse, ...files]);
  });
});
