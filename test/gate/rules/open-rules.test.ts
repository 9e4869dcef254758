import {
  appendFileSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unwatchFile,
  watchFile,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { RulesError } from '../../../src/gate/match/rules.ts';
import { openRules } from '../../../src/gate/rules/open-rules.ts';
import { readRulesFiles } from '../../../src/gate/rules/rules-files.ts';
import type { Log } from '../../../src/server/observation/log.ts';
import { createMetrics } from '../../../src/server/observation/metrics.ts';

const first = 'rules:\n  - { id: first, path: /**, access: open }\n';
const opening = 'rules:\n  - { id: all, path: /**, access: open }\n';
const closing = '  - { id: admin, path: /admin/**, access: deny }\n';

const { setTimeout: wait } = globalThis;
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());
/** Lets the watchers read the state of their files. */
const pause = () => new Promise<void>((resolve) => wait(resolve, 50));
/** Lets the milliseconds pass in which a file must stay unchanged. */
const settle = () => vi.advanceTimersByTimeAsync(500);

async function open(kind: 'file' | 'folder' = 'file') {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-open-rules-'));
  const path = join(folder, 'rules.yaml');
  writeFileSync(path, first);
  /** The ids of each set of rules in force, and each event of the log. */
  const seen: string[] = [];
  const reloads: (() => void | Promise<void>)[] = [];
  let preparations = 0;
  let cause: Error | undefined;
  const log: Pick<Log, 'write'> = { write: (_level, event) => void seen.push(event) };
  const owned = openRules({
    origin: { kind: 'file', path: kind === 'file' ? path : folder },
    log: log as Log, // only its lines are written here
    metrics: createMetrics(),
    reloads: { add: (each) => void reloads.push(each) },
  });
  let notice = (): void => {};
  const look = (): void => notice();
  onTestFinished(() => {
    owned.close();
    for (const each of looked) unwatchFile(each, look);
    rmSync(folder, { recursive: true });
  });
  await owned.follow({
    prepare: async ({ rules }) => {
      preparations++;
      if (cause !== undefined) throw cause;
      return { commit: () => void seen.push(rules.map(({ id }) => id).join()) };
    },
  });
  const looked: string[] = [];
  const lookAt = async (each: string): Promise<void> => {
    looked.push(each);
    // The watchers of a path share one, which calls the rules first.
    watchFile(each, look);
    // The watcher compares with what it saw first.
    await pause();
  };
  await lookAt(kind === 'file' ? path : folder);
  /** Changes the file, and resolves once the watcher has seen that. */
  const change = async (write: () => void, meanwhile?: () => Promise<unknown>): Promise<void> => {
    const noticed = new Promise<void>((resolve) => {
      notice = resolve;
    });
    write();
    await meanwhile?.();
    await noticed;
  };
  /** Whole at each moment: a reader in another thread would see the truncated file. */
  const replace = (text: string): void => {
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  };
  /** Lets every further preparation fail. */
  const fail = (error: Error): void => {
    cause = error;
  };
  const hangUp = () => Promise.all(reloads.map((each) => each()));
  return { path, folder, seen, close: owned.close, change, lookAt, replace, fail, hangUp, count: () => preparations };
}

describe('a file of rules that changes', () => {
  it('half-written, and complete YAML → not loaded until it is unchanged', async () => {
    const { path, seen, change } = await open();
    await change(() => writeFileSync(path, opening));
    for (let i = 0; i < 5; i++) {
      appendFileSync(path, i < 4 ? '  # more follows\n' : closing);
      await settle();
    }
    expect(seen).toEqual(['first', 'rules_loaded']);
    await settle();
    expect(seen.slice(2)).toEqual(['all,admin', 'rules_loaded']);
  });

  it('renamed into place → loaded once', async () => {
    const { seen, change, replace } = await open();
    await change(() => replace(opening));
    for (let i = 0; i < 10; i++) await settle();
    expect(seen).toEqual(['first', 'rules_loaded', 'all', 'rules_loaded']);
  });

  it('changing without end → loaded while it changes', async () => {
    const { seen, change, replace } = await open();
    await change(() => replace(opening));
    for (let i = 0; i < 8; i++) {
      replace(`${opening}  # ${i}\n`);
      await settle();
    }
    expect(seen.slice(0, 3)).toEqual(['first', 'rules_loaded', 'all']);
  });

  it('SIGHUP → loaded immediately, and not again when it is unchanged', async () => {
    const { seen, change, replace, hangUp } = await open();
    await change(
      () => replace(opening),
      async () => {
        await hangUp();
        expect(seen).toEqual(['first', 'rules_loaded', 'all', 'rules_loaded']);
      },
    );
    await settle();
    expect(seen).toHaveLength(4);
  });

  it('wrong, and SIGHUP → one line says so, and the next valid file is loaded', async () => {
    const { seen, change, replace, hangUp } = await open();
    await change(() => replace('rules: []\n'), hangUp);
    await settle();
    expect(seen).toEqual(['first', 'rules_loaded', 'rules_kept']);
    await change(() => replace(first));
    await settle();
    expect(seen.slice(3)).toEqual(['first', 'rules_loaded']);
  });

  it('SIGHUPs while a provider cannot be prepared → one line for each, and one repetition in a second', async () => {
    const { seen, replace, fail, hangUp, count } = await open();
    replace(opening);
    fail(new Error('no keys'));
    for (let i = 0; i < 4; i++) await hangUp();
    const before = count();
    for (let i = 0; i < 6; i++) await settle();
    expect(count() - before).toBe(3);
    expect(seen.slice(2)).toEqual(Array.from({ length: 4 }, () => 'rules_kept'));
  });

  it('closed while it changes → not loaded', async () => {
    const { seen, change, replace, close } = await open();
    await change(() => replace(opening));
    close();
    for (let i = 0; i < 10; i++) await settle();
    expect(seen).toEqual(['first', 'rules_loaded']);
  });
});

describe('a folder of rules that changes', () => {
  it('rejected file, corrected in place → loaded', async () => {
    const { folder, seen, change, lookAt } = await open('folder');
    const second = join(folder, 'second.yaml');
    await change(() => writeFileSync(second, 'rules: ['));
    await settle();
    expect(seen.slice(2)).toEqual(['rules_kept']);
    await lookAt(second);
    await change(() => writeFileSync(second, 'rules:\n  - { id: second, path: /second, access: open }\n'));
    await settle();
    expect(seen.slice(3)).toEqual(['first,second', 'rules_loaded']);
  });

  it.each<[string, (folder: string) => void]>([
    ['link to itself', (folder) => symlinkSync('second.yaml', join(folder, 'second.yaml'))],
    ['no file', (folder) => rmSync(join(folder, 'rules.yaml'))],
  ])('%s → one line', async (_what, damage) => {
    const { folder, seen, change } = await open('folder');
    await change(() => damage(folder));
    for (let i = 0; i < 4; i++) {
      await settle();
      await pause();
    }
    expect(seen.slice(2)).toEqual(['rules_kept']);
  });
});

it('a link to itself → the error says what to do', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-open-rules-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'rules.yaml');
  symlinkSync('rules.yaml', path);
  expect(() => readRulesFiles(path)).toThrow(new RulesError(`${path} cannot be read (ELOOP). Name a readable file.`));
});
