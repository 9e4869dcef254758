import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { longestFiles } from '../support/longest-first.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const vitest = join(root, 'node_modules/vitest/vitest.mjs');

let base: string;

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'portcullis-summary-'));
});
afterAll(() => rm(base, { recursive: true }));

interface Run {
  readonly code: number;
  /** Lines of the output that are not empty. */
  readonly lines: readonly string[];
  /** Content of the files. */
  readonly kept: string;
  readonly failed: string;
}

/** Runs the fixture on a machine that has no program at all. */
async function runFixture(environment: Readonly<Record<string, string>>): Promise<Run> {
  const folder = await mkdtemp(join(base, 'run-'));
  const args = [vitest, 'run', '--config', 'test/run-summary/fixture.config.ts'];
  const env = { PATH: folder, SUMMARY_FOLDER: folder, ...environment };
  const { code, text } = await new Promise<{ readonly code: number; readonly text: string }>((resolve) => {
    const child = execFile(process.execPath, args, { cwd: root, env }, (_, text) =>
      resolve({ code: child.exitCode ?? -1, text }),
    );
  });
  const lines = text.split('\n').filter((line) => line !== '');
  const read = (name: string): Promise<string> => readFile(join(folder, name), 'utf8');
  return { code, lines, kept: await read('tests.txt'), failed: await read('failed.txt') };
}

const missing = [
  'Tests skipped, because these programs are not installed: nginx (3), redis-server (2)',
  'To install them: sudo apt-get install nginx redis-server',
];
const slowest = expect.stringMatching(/^Seconds of the slowest files: run-summary\/fixture\.ts \d+\.\d$/);

describe.concurrent('the end of a run', () => {
  it('programs are missing, and a hook skips its tests → their names, the command that installs them, and the slowest files; the run passes', async () => {
    const { code, lines, kept } = await runFixture({ FIXTURE: 'hook that skips' });
    expect(lines).toEqual([...missing, slowest, '1 passed, 0 failed, 5 skipped']);
    expect(kept).toBe('1 passed, 0 failed, 5 skipped\n');
    expect(code).toBe(0);
  });

  it('in CI, ABSENT_PROGRAMS names one of two → the run fails for the other, and for the hook that skips', async () => {
    const environment = { FIXTURE: 'hook that skips', CI: 'true', ABSENT_PROGRAMS: 'caddy,nginx' };
    const { code, lines } = await runFixture(environment);
    expect(lines).toEqual([
      'Tests skipped, because ABSENT_PROGRAMS names: nginx (3)',
      'Tests skipped, because these programs are not installed: redis-server (2)',
      'To install them: sudo apt-get install redis-server',
      'In CI a skipped test fails the run:',
      'redis-server is missing, and ABSENT_PROGRAMS does not name it.',
      'Skipped, and not for a missing program: hook that skips > first',
      'Skipped, and not for a missing program: hook that skips > second',
      slowest,
      '1 passed, 0 failed, 5 skipped',
    ]);
    expect(code).toBe(1);
  });

  it('a hook fails → one failure, and the tests that did not run are skipped', async () => {
    const { code, lines, failed } = await runFixture({ FIXTURE: 'hook that fails' });
    expect(lines.at(-1)).toBe('1 passed, 1 failed, 5 skipped');
    expect(failed).toBe('test/run-summary/fixture.ts > hook that fails\n');
    expect(code).toBe(1);
  });
});

it.each(longestFiles)('%s, which starts early → is there', (name) =>
  expect(existsSync(join(root, 'test', `${name}.test.ts`))).toBe(true),
);
