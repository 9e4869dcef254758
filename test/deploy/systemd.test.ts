import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { needs, requireProgram } from '../support/programs.ts';

const run = promisify(execFile);
const unit = 'deploy/systemd/portcullis.service';

describe('the unit for systemd', needs('systemd-analyze'), () => {
  it('is valid, and so is its socket', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'portcullis-unit-'));
    try {
      await cp('deploy/systemd', folder, { recursive: true });
      // The program is not installed where the unit expects it; another stands in, so that all the rest is looked at.
      const text = await readFile(unit, 'utf8');
      await writeFile(join(folder, 'portcullis.service'), text.replace(/^ExecStart=.*$/m, 'ExecStart=/bin/true'));
      const files = ['portcullis.service', 'portcullis.socket'].map((name) => join(folder, name));
      const { stderr } = await run(requireProgram('systemd-analyze'), ['verify', ...files]);
      expect(stderr.split('\n').filter((line) => line.includes('portcullis'))).toEqual([]);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('gives the service few rights: exposure below 2 of 10', async () => {
    const { stdout } = await run(requireProgram('systemd-analyze'), ['security', '--offline=true', unit]);
    const level = Number(/exposure level for portcullis\.service: (\d+\.\d+)/.exec(stdout)?.[1]);
    expect(level).toBeLessThan(2);
  });
});
