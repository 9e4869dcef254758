import { messageOf } from '../../core/shown-text.ts';
import { watchSettledFile } from '../../server/lifecycle/file.ts';
import type { Reloads } from '../../server/lifecycle/reload.ts';
import type { Log } from '../../server/observation/log.ts';
import type { Metrics } from '../../server/observation/metrics.ts';
import type { AssertionKeyFiles } from '../identity/assertion-keys.ts';
import { findPlaceholders } from '../match/rule-pattern.ts';
import { RulesError } from '../match/rules.ts';
import { listRulesFiles, parseRules, type RulesFollower, type RulesOrigin, readRulesFiles } from './rules-files.ts';
import type { RulesFile } from './rules-reader.ts';

interface OpenRulesOptions {
  readonly origin: RulesOrigin;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly reloads: Reloads;
  readonly readKeys?: () => AssertionKeyFiles | undefined;
}

type ReloadCause = 'change' | 'request' | 'retry';

const retryInterval = 1000;
/** Name of a member that names a file: a secret, a certificate. */
const namedFile = /[a-z]File\b/;

/**
 * Reads the rules, and reads them again on SIGHUP or once a changed file stays unchanged. New rules are validated
 * completely before any of them is active; after an error the old rules stay active, and one log line gives the reason.
 */
export function openRules({ origin, log, metrics, reloads, readKeys }: OpenRulesOptions) {
  const readFile = (): RulesFile => ({
    ...(origin.kind === 'settings' ? origin.file : readRulesFiles(origin.path)),
    keys: readKeys?.(),
  });
  let file = readFile();
  let generation = 0;
  let lastReloadOk = 1;
  let follower: RulesFollower | undefined;
  /** The last rejected file, which is reported once; without content if it cannot be read. */
  let rejected: { readonly text: string | undefined; readonly problem: string } | undefined;
  let retry: NodeJS.Timeout | undefined;
  let stopWatching = (): void => {};
  // Sequential: a change may arrive while the change before it is being prepared.
  let queue = Promise.resolve();

  const swap = async (next: RulesFile): Promise<void> => {
    const rules = parseRules(next);
    const prepared = await follower?.prepare(rules, next);
    prepared?.commit();
    file = next;
    generation++;
    for (const { seen, fix } of findPlaceholders(rules.rules)) {
      log.write('warn', 'rules_doubtful', { file: next.name, problem: `${seen}. ${fix}` });
    }
    log.write('info', 'rules_loaded', { file: next.name, rules: rules.rules.length, generation });
  };

  const reload = async (cause: ReloadCause): Promise<void> => {
    let text: string | undefined;
    try {
      const next = readFile();
      text = contentOf(next);
      if (cause === 'change' && text === rejected?.text) return;
      const isChanged = text !== contentOf(file) || lastReloadOk === 0;
      // A request also reads files again that the rules name.
      if (isChanged || (cause === 'request' && namedFile.test(text))) await swap(next);
      lastReloadOk = 1;
      rejected = undefined;
    } catch (error) {
      lastReloadOk = 0;
      const problem = messageOf(error);
      const isReported = cause !== 'request' && text === rejected?.text && problem === rejected?.problem;
      rejected = { text, problem };
      if (!isReported) log.write('error', 'rules_kept', { file: file.name, generation, problem });
      // An invalid file stays invalid until it changes; the keys of an issuer may be there next time.
      if (error instanceof RulesError) return;
      clearTimeout(retry);
      retry = setTimeout(() => void enqueue('retry'), retryInterval).unref();
    }
  };
  const enqueue = (cause: ReloadCause): Promise<void> => {
    queue = queue.then(() => reload(cause));
    return queue;
  };
  metrics.gauge('portcullis_rules_generation', 'Number of times that rules became active.', () => generation);
  metrics.gauge(
    'portcullis_rules_last_reload_ok',
    '1 if the rules of the last reload became active, otherwise 0.',
    () => lastReloadOk,
  );

  return {
    /** Activates the first rules, and later each change. Rejects with `RulesError` if the first are not usable. */
    async follow(next: RulesFollower): Promise<void> {
      follower = next;
      await swap(file);
      if (origin.kind === 'settings') return;
      stopWatching = watchRules(origin.path, () => enqueue('change'));
      reloads.add(() => enqueue('request'));
    },
    close: () => stopWatching(),
  };
}

/** Watches a rules file or a folder of them. Returns a function that stops watching. */
function watchRules(root: string, reload: () => Promise<void>): () => void {
  const stops = new Map<string, () => void>();
  // A name keeps its watcher, which would report an absent file again if it were new.
  const follow = (): void => {
    const names = new Set(listRulesFiles(root));
    for (const [name, stop] of stops) {
      if (names.has(name)) continue;
      stop();
      stops.delete(name);
    }
    for (const name of names) if (!stops.has(name)) stops.set(name, watchSettledFile(name, onChange));
  };
  const onChange = (): void => void reload().then(follow);
  follow();
  return () => {
    for (const stop of stops.values()) stop();
  };
}

function contentOf({ text, files, keys }: RulesFile): string {
  return JSON.stringify([text, files, keys]);
}
