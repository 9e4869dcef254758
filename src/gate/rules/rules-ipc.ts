import cluster, { type Worker } from 'node:cluster';
import type { OwnedRules } from './open-rules.ts';
import type { RulesFile } from './rules-reader.ts';
import { type PreparedRules, parseRules, RulesError, type RulesFollower, type RulesSource } from './rules-source.ts';

type RulesMessage =
  | { readonly type: 'rules'; readonly step: 'current'; readonly attempt: 0; readonly file: RulesFile }
  /** Each attempt has its own number, so that a late reply does not count for the next attempt. */
  | { readonly type: 'rules'; readonly step: 'prepare'; readonly attempt: number; readonly file: RulesFile }
  | { readonly type: 'rules'; readonly step: 'commit' | 'discard'; readonly attempt: number };

type RulesReply =
  | { readonly type: 'rules'; readonly request: 'current' }
  | { readonly type: 'rules'; readonly attempt: number; readonly prepared: boolean; readonly problem: string };

const prepareTimeout = 4000;

/**
 * Shares the rules that this process reads with its workers. New rules are prepared in all processes first, and then
 * become active in all workers or in none.
 */
export function shareRules(owned: () => OwnedRules, own: RulesFollower): RulesFollower {
  const waiting = new Map<string, (problem: string | undefined) => void>();
  /** Workers that requested the rules; a worker that is still loading requests them later. */
  const following = new Set<Worker>();
  let attempts = 0;
  cluster.on('message', (worker: Worker, message: RulesReply) => {
    if (message.type !== 'rules') return;
    if ('request' in message) {
      if (!following.has(worker)) worker.once('exit', () => following.delete(worker));
      following.add(worker);
      send(worker, { type: 'rules', step: 'current', attempt: 0, file: owned().current().file });
      return;
    }
    waiting.get(`${worker.id} ${message.attempt}`)?.(message.prepared ? undefined : message.problem);
  });

  const prepareIn = (worker: Worker, message: RulesMessage): Promise<void> =>
    new Promise((resolve, reject) => {
      const key = `${worker.id} ${message.attempt}`;
      const end = (settle: () => void): void => {
        clearTimeout(timer);
        worker.off('exit', leave);
        waiting.delete(key);
        settle();
      };
      const finish = (problem: string | undefined): void =>
        end(problem === undefined ? resolve : () => reject(new RulesError(problem)));
      // The replacement of an ended worker starts with the active rules.
      const leave = (): void => finish(undefined);
      const late = new Error('a worker was not ready in time; the rules are tried again');
      const timer = setTimeout(() => end(() => reject(late)), prepareTimeout);
      waiting.set(key, finish);
      worker.once('exit', leave);
      send(worker, message);
    });

  return {
    async prepare(rules, file) {
      const prepared = await own.prepare(rules, file);
      const attempt = ++attempts;
      const workers = liveWorkers().filter((worker) => following.has(worker));
      try {
        await Promise.all(
          workers.map((worker) => prepareIn(worker, { type: 'rules', step: 'prepare', attempt, file })),
        );
      } catch (error) {
        for (const worker of workers) send(worker, { type: 'rules', step: 'discard', attempt });
        throw error;
      }
      return {
        commit() {
          prepared.commit();
          // A worker that started meanwhile requests the rules that it does not have.
          for (const worker of liveWorkers()) send(worker, { type: 'rules', step: 'commit', attempt });
        },
      };
    },
  };
}

export function followRules(): RulesSource {
  return {
    follow: (follower) =>
      new Promise((resolve, reject) => {
        let ready: { readonly attempt: number; readonly rules: PreparedRules } | undefined;
        const prepare = async (file: RulesFile, attempt: number): Promise<void> => {
          ready = { attempt, rules: await follower.prepare(await parseRules(file), file) };
        };
        const requestCurrent = (): void => reply({ type: 'rules', request: 'current' });

        const apply = async (message: RulesMessage): Promise<void> => {
          const { step, attempt } = message;
          if (step === 'current') {
            await prepare(message.file, attempt)
              .then(() => ready?.rules.commit())
              .then(resolve, reject);
          } else if (step === 'prepare') {
            const problem = await prepare(message.file, attempt).then(() => undefined, describe);
            reply({ type: 'rules', attempt, prepared: problem === undefined, problem: problem ?? '' });
          } else if (step === 'commit') {
            if (ready?.attempt === attempt) ready.rules.commit();
            else requestCurrent();
          } else if (ready?.attempt === attempt) {
            ready = undefined;
          }
        };

        // Sequential: rules that are prepared first must not become active last.
        let queue = Promise.resolve();
        process.on('message', (message: RulesMessage) => {
          if (message.type === 'rules') queue = queue.then(() => apply(message));
        });
        requestCurrent();
      }),
    close: () => {},
  };
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown';
}

function liveWorkers(): readonly Worker[] {
  const known = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
  return known.filter((worker) => worker.isConnected());
}

function send(worker: Worker, message: RulesMessage): void {
  if (worker.isConnected()) worker.send(message, () => {});
}

function reply(message: RulesReply): void {
  process.send?.(message, undefined, {}, () => {});
}
