import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync } from 'node:fs';
import * as modules from 'node:module';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { useFolder } from '../support/folder.ts';

const base = useFolder();

let folder = '';
beforeEach(() => {
  if (!existsSync('dist/cli/main.js')) throw new Error('the build is missing; run: npm run build');
  folder = mkdtempSync(join(base, 'each-'));
});

function run(environment: NodeJS.ProcessEnv) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['dist/cli/main.js', '--version'], {
    env: { PATH: process.env['PATH'], HOME: folder, TMPDIR: folder, ...environment },
    encoding: 'utf8',
  });
  return { status, version: stdout, stderr };
}

const good = { status: 0, version: expect.stringMatching(/^\d+\.\d+\.\d+\n$/), stderr: '' };

describe('compiled code of the commands', () => {
  it('kept in the cache folder of the user, and not in that for temporary files, where Node can keep it', () => {
    expect(run({ XDG_CACHE_HOME: join(folder, 'cache') })).toEqual(good);
    expect(existsSync(join(folder, 'cache/portcullis/compiled'))).toBe('enableCompileCache' in modules);
    expect(existsSync(join(folder, 'node-compile-cache'))).toBe(false);
  });

  it('cache folder that cannot be made → the command runs, and says nothing', () =>
    expect(run({ XDG_CACHE_HOME: join(process.execPath, 'cache') })).toEqual(good));

  it('user without a home folder → the command runs, and says nothing', () => {
    const program = `
      import os from 'node:os';
      import { syncBuiltinESMExports } from 'node:module';
      os.homedir = () => { throw new Error('no home'); };
      syncBuiltinESMExports();
    `;
    const preload = `data:text/javascript,${encodeURIComponent(program)}`;
    expect(run({ NODE_OPTIONS: `--import=${preload}` })).toEqual(good);
  });
});
