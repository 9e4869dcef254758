import { appendFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, it, vi } from 'vitest';
import { openRules } from '../../../src/gate/rules/open-rules.ts';
import type { Log } from '../../../src/server/observation/log.ts';
import { createMetrics } from '../../../src/server/observation/metrics.ts';

const first = 'rules:\n  - { id: first, path: /**, access: open }\n';
const opening = 'rules:\n  - { id: all, path: /**, access: open }\n';
const closing = '  - { id: admin, path: /admin/**, access: deny }\n';

// Tests run side by side: only the function of the context belongs to one of them.
async function open(onTestFinished: (end: () => void) => void) {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-open-rules-'));
  const path = join(folder, 'rules.yaml');
  writeFileSync(path, first);
  /** The ids of each set of rules in force, and each event of the log. */
  const seen: string[] = [];
  const reloads: (() => void | Promise<void>)[] = [];
  const log: Pick<Log, 'write'> = { write: (_level, event) => void seen.push(event) };
  const owned = openRules({
    origin: { kind: 'file', path },
    log: log as Log, // only its lines are written here
    metrics: createMetrics(),
    reloads: { add: (each) => void reloads.push(each) },
  });
  onTestFinished(() => {
    owned.close();
    rmSync(folder, { recursive: true });
  });
  await owned.follow({
    prepare: async ({ rules }) => ({ commit: () => void seen.push(rules.map(({ id }) => id).join()) }),
  });
  // The watcher compares with what it saw first.
  await sleep(50);
  return { path, seen, close: owned.close, hangUp: () => Promise.all(reloads.map((each) => each())) };
}

/** Writes until it is enough. The writer and the watcher share one event loop, so neither gets ahead. */
async function writeUntil(isEnough: () => boolean, write: () => void): Promise<void> {
  for (const deadline = Date.now() + 20_000; !isEnough() && Date.now() < deadline; ) {
    write();
    await sleep(100);
  }
}

describe.concurrent('a file of rules that changes', { timeout: 30_000 }, () => {
  it('half-written, and complete YAML → not loaded until it is unchanged', async ({ expect, onTestFinished }) => {
    const { path, seen } = await open(onTestFinished);
    writeFileSync(path, opening);
    const end = Date.now() + 2000;
    await writeUntil(
      () => Date.now() > end,
      () => appendFileSync(path, '  # more follows\n'),
    );
    appendFileSync(path, closing);
    await vi.waitFor(() => expect(seen).toContain('all,admin'), 15_000);
    expect(seen).toEqual(['first', 'rules_loaded', 'all,admin', 'rules_loaded']);
  });

  it('renamed into place → loaded once', async ({ expect, onTestFinished }) => {
    const { path, seen } = await open(onTestFinished);
    writeFileSync(`${path}.new`, opening);
    renameSync(`${path}.new`, path);
    await vi.waitFor(() => expect(seen).toContain('all'), 15_000);
    await sleep(1500);
    expect(seen).toEqual(['first', 'rules_loaded', 'all', 'rules_loaded']);
  });

  it('changing without end → loaded while it changes', { timeout: 60_000 }, async ({ expect, onTestFinished }) => {
    const { path, seen } = await open(onTestFinished);
    let count = 0;
    await writeUntil(
      () => seen.includes('all'),
      () => {
        // Whole at each moment: a reader in another thread would see the truncated file.
        writeFileSync(`${path}.new`, `${opening}  # ${count++}\n`);
        renameSync(`${path}.new`, path);
      },
    );
    expect(seen.slice(0, 3)).toEqual(['first', 'rules_loaded', 'all']);
  });

  it('SIGHUP → loaded immediately, and not again when it is unchanged', async ({ expect, onTestFinished }) => {
    const { path, seen, hangUp } = await open(onTestFinished);
    writeFileSync(path, opening);
    await hangUp();
    expect(seen).toEqual(['first', 'rules_loaded', 'all', 'rules_loaded']);
    await sleep(3000);
    expect(seen).toHaveLength(4);
  });

  it('wrong, and SIGHUP → one line says so, and the next valid file is loaded', async ({ expect, onTestFinished }) => {
    const { path, seen, hangUp } = await open(onTestFinished);
    writeFileSync(path, 'rules: []\n');
    await hangUp();
    await sleep(3000);
    expect(seen).toEqual(['first', 'rules_loaded', 'rules_kept']);
    writeFileSync(path, first);
    await vi.waitFor(() => expect(seen).toHaveLength(5), 15_000);
    expect(seen.slice(3)).toEqual(['first', 'rules_loaded']);
  });

  it('closed while it changes → not loaded', async ({ expect, onTestFinished }) => {
    const { path, seen, close } = await open(onTestFinished);
    // It never stays unchanged for long enough, however late this process runs.
    for (let count = 0; count < 20; count++) {
      writeFileSync(path, `${opening}  # ${count}\n`);
      await sleep(60);
    }
    close();
    await sleep(1500);
    expect(seen).toEqual(['first', 'rules_loaded']);
  });
});
