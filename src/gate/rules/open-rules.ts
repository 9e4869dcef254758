import { messageOf } from '../../core/shown-text.ts';
import { watchSettledFile } from '../../server/lifecycle/file.ts';
import type { Reloads } from '../../server/lifecycle/reload.ts';
import type { Log } from '../../server/observation/log.ts';
import type { Metrics } from '../../server/observation/metrics.ts';
import type { AssertionKeyFiles } from '../identity/assertion-keys.ts';
import { findPlaceholders } from '../match/rule-pattern.ts';
import { RulesError } from '../match/rules.ts';
import { parseRules, type RulesFollower, type RulesOrigin, readRulesFiles } from './rules-files.ts';
import type { RulesFile } from './rules-reader.ts';

interface OpenRulesOptions {
  readonly origin: RulesOrigin;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly reloads: Reloads;
  readonly readKeys?: () => AssertionKeyFiles | undefined;
}

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
  /** Content of the last rejected file, which is reported once. */
  let rejected: string | undefined;
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

  const reload = async (cause: 'change' | 'request'): Promise<void> => {
    let text: string | undefined;
    try {
      const next = readFile();
      text = contentOf(next);
      if (cause === 'change' && text === rejected) return;
      const isChanged = text !== contentOf(file) || lastReloadOk === 0;
      // A request also reads files again that the rules name.
      if (isChanged || (cause === 'request' && namedFile.test(text))) await swap(next);
      lastReloadOk = 1;
      rejected = undefined;
    } catch (error) {
      lastReloadOk = 0;
      rejected = text;
      log.write('error', 'rules_kept', { file: file.name, generation, problem: messageOf(error) });
      // An invalid file stays invalid until it changes; the keys of an issuer may be there next time.
      if (!(error instanceof RulesError)) setTimeout(() => void enqueue('request'), retryInterval).unref();
    }
  };
  const enqueue = (cause: 'change' | 'request'): Promise<void> => {
    queue = queue.then(() => reload(cause));
    return queue;
  };
  const watch = (root: string): void => {
    const names = [root, ...(file.files ?? []).map(({ name }) => name)];
    const onChange = (): void => {
      void enqueue('change').then(() => {
        if (file.files === undefined) return;
        stopWatching();
        watch(root);
      });
    };
    const stops = names.map((name) => watchSettledFile(name, onChange));
    stopWatching = () => {
      for (const stop of stops) stop();
    };
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
      watch(origin.path);
      reloads.add(() => enqueue('request'));
    },
    close: () => stopWatching(),
  };
}

function contentOf({ text, files, keys }: RulesFile): string {
  return JSON.stringify([text, files, keys]);
}
