import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CommandRow, commandTable } from '../../src/cli/commands/command-table.ts';
import { listFlags } from '../../src/cli/commands/flags.ts';
import { runCommand } from '../support/command-runs.ts';
import { needs } from '../support/programs.ts';

const run = promisify(execFile);
const rows = Object.entries<CommandRow>(commandTable);
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-completions-'));
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { status, stdout } = await runCommand(['completions', shell], {});
    expect(status).toBe(0);
    await writeFile(join(folder, shell), stdout);
  }
});
afterAll(() => rm(folder, { recursive: true }));

type Complete = (...words: readonly string[]) => Promise<readonly string[]>;

async function print(shell: string, args: readonly string[]): Promise<readonly string[]> {
  const { stdout } = await run(shell, args, { env: { PATH: process.env['PATH'], HOME: folder } });
  return stdout.split('\n').filter((line) => line !== '');
}

/** Passes the words of the line to the function that the script registers, as bash does. */
const bash: Complete = (...words) => {
  const script = `source "$1"; shift; [[ $(complete -p portcullis) == *_portcullis* ]] || exit 9
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _portcullis; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return print('bash', ['--norc', '-c', script, 'bash', join(folder, 'bash'), ...words]);
};

/** Prints the words that the function passes to the builtins of the completion system. */
const zsh: Complete = (...words) => {
  const script = `compdef() { }; _files() { print FILES }
    _describe() { local each; for each in \${(P)2}; print -r -- \${each%%:*} }; compadd() { print -l -- \${(P)2} }
    source "$1"; shift; words=("$@"); CURRENT=$#; PREFIX=$words[-1]; _portcullis`;
  return print('zsh', ['-f', '-c', script, 'zsh', join(folder, 'zsh'), ...words]);
};

const fish: Complete = async (...words) => {
  const lines = await print('fish', [
    '--no-config',
    '-c',
    `source ${join(folder, 'fish')}; complete -C "${words.join(' ')}"`,
  ]);
  return lines.map((line) => line.replace(/\t.*/, ''));
};

describe.each([
  ['bash', bash, needs()],
  ['zsh', zsh, needs('zsh')],
  ['fish', fish, needs('fish')],
] as const)('%s', (name, complete, needed) => {
  it('the first word → every command', needed, async () => {
    const words = await complete('portcullis', '');
    expect(words).toEqual(expect.arrayContaining(Object.keys(commandTable)));
  });

  it('each command → every flag', needed, async () => {
    for (const [command, row] of rows) {
      const flags = (await complete('portcullis', command, '--')).filter((word) => word.startsWith('--'));
      expect([...new Set(flags)].toSorted(), command).toEqual(
        Object.keys(listFlags(row))
          .map((flag) => `--${flag}`)
          .toSorted(),
      );
    }
  });

  it('a command with words → its words', needed, async () => {
    expect(await complete('portcullis', 'rules', '')).toEqual(expect.arrayContaining(['check', 'test', 'which']));
    expect(await complete('portcullis', 'completions', '')).toEqual(expect.arrayContaining(['bash', 'zsh', 'fish']));
  });

  it('the value of a flag → no flags and no words', needed, async () => {
    for (const words of [
      ['explain', '--file'],
      ['gate', '--rules'],
    ]) {
      const offered = await complete('portcullis', ...words, '');
      expect(
        offered.filter((word) => /^--|^check$/.test(word)),
        name,
      ).toEqual([]);
    }
  });
});

it('bash: the beginning of a word → what begins with it', async () => {
  expect(await bash('portcullis', 'con')).toEqual(['config']);
  expect(await bash('portcullis', 'help', 're')).toEqual(['revoke']);
  expect(await bash('portcullis', 'config', '--js')).toEqual(['--json']);
  expect(await bash('portcullis', 'explain', '--rules', 'a', '--off')).toEqual(['--offline']);
  expect(await bash('portcullis', 'nothing', '')).toEqual([]);
});

it.each([[[]], [['sh']], [['toString']], [['bash', 'zsh']]])('completions %j → 64', async (args) => {
  const { status, stdout, stderr } = await runCommand(['completions', ...args], {});
  expect([status, stdout]).toEqual([64, '']);
  expect(stderr).toBe('portcullis: write bash, zsh or fish.\nFlags and examples: portcullis completions --help\n');
});
