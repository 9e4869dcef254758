import { IrregularFile, LargeFile, readRegularFile } from '../../server/lifecycle/regular-file.ts';
import type { Reloads } from '../../server/lifecycle/reload.ts';
import { watchSettledFile } from '../../server/lifecycle/watched-file.ts';
import type { Log } from '../../server/observation/log.ts';
import type { Metrics } from '../../server/observation/metrics.ts';
import type { RulesFile } from './rules-reader.ts';
import { parseRules, RulesError, type RulesFollower, type RulesOrigin, type RulesSource } from './rules-source.ts';

/** What the rules are opened with, in the process that reads their file. */
export interface OpenRulesOptions {
  readonly origin: RulesOrigin;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly reloads: Reloads;
}

/** The rules of the one process that reads their file. */
export interface OwnedRules extends RulesSource {
  /** The file whose rules are in force, and how many came before it. */
  current(): { readonly file: RulesFile; readonly generation: number };
}

/** Milliseconds until rules that a worker did not make ready in time are tried again. */
const retryInterval = 1000;
const maxFileBytes = 16 * 1024 * 1024;

/**
 * Reads the rules, and reads them again when their file has changed and is unchanged for a while, and on SIGHUP. New rules are validated whole before the
 * first of them is used; if anything is wrong, the old ones stay, and one line says why.
 */
export function openRules({ origin, log, metrics, reloads }: OpenRulesOptions): OwnedRules {
  let file = readOrigin(origin);
  let generation = 0;
  let lastReloadOk = 1;
  let follower: RulesFollower | undefined;
  /** The last text that cannot be used, so that one file is reported once. */
  let rejected: string | undefined;
  let stopWatching = (): void => {};
  // One after the other: a change may come while the one before it is made ready.
  let queue = Promise.resolve();

  const swap = async (next: RulesFile): Promise<void> => {
    const rules = await parseRules(next);
    const prepared = await follower?.prepare(rules, next);
    prepared?.commit();
    file = next;
    generation++;
    log.write('info', 'rules_loaded', { file: next.name, rules: rules.rules.length, generation });
  };

  const reload = async (cause: 'change' | 'request'): Promise<void> => {
    let text: string | undefined;
    try {
      const next = readOrigin(origin);
      text = next.text;
      if (cause === 'change' && text === rejected) return;
      if (text !== file.text || lastReloadOk === 0) await swap(next);
      lastReloadOk = 1;
      rejected = undefined;
    } catch (error) {
      lastReloadOk = 0;
      rejected = text;
      log.write('error', 'rules_kept', { file: file.name, generation, problem: describe(error) });
      // What is wrong with a file is wrong until it changes; a worker that was late may not be so again.
      if (!(error instanceof RulesError)) setTimeout(() => void enqueue('request'), retryInterval).unref();
    }
  };
  const enqueue = (cause: 'change' | 'request'): Promise<void> => {
    queue = queue.then(() => reload(cause));
    return queue;
  };
  const path = origin.kind === 'file' ? origin.path : undefined;

  metrics.gauge({
    name: 'portcullis_rules_generation',
    help: 'How many times rules were put in force.',
    aggregate: 'max',
    read: () => generation,
  });
  metrics.gauge({
    name: 'portcullis_rules_last_reload_ok',
    help: 'Whether the last reload put its rules in force: 1 or 0.',
    aggregate: 'max',
    read: () => lastReloadOk,
  });

  return {
    current: () => ({ file, generation }),
    async follow(next) {
      follower = next;
      await swap(file);
      if (path === undefined) return;
      stopWatching = watchSettledFile(path, () => void enqueue('change'));
      reloads.add(() => enqueue('request'));
    },
    close: () => stopWatching(),
  };
}

/** Throws `RulesError` for a file that cannot be read. */
function readOrigin(origin: RulesOrigin): RulesFile {
  if (origin.kind === 'settings') return origin.file;
  const { path } = origin;
  try {
    return { name: path, text: readRegularFile(path, maxFileBytes).toString('utf8') };
  } catch (cause) {
    if (cause instanceof LargeFile) throw new RulesError(`${path} has more than ${maxFileBytes} bytes`, { cause });
    if (cause instanceof IrregularFile) {
      throw new RulesError(`${path} is not a regular file. Name one: it is read again when it changes.`, { cause });
    }
    const code = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : '';
    throw new RulesError(`${path} cannot be read${code}. Name a file that can.`, { cause });
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown';
}
