import cluster, { type Worker } from 'node:cluster';
import type { OwnedRules } from './open-rules.ts';
import type { RulesFile } from './rules-reader.ts';
import { type PreparedRules, parseRules, RulesError, type RulesFollower, type RulesSource } from './rules-source.ts';

/** What the primary process tells workers of rules. */
type RulesMessage =
  /** To a worker that begins. */
  | { readonly type: 'rules'; readonly step: 'current'; readonly attempt: 0; readonly file: RulesFile }
  /** Each attempt has a number of its own, so that a late answer is not taken for one to the next. */
  | { readonly type: 'rules'; readonly step: 'prepare'; readonly attempt: number; readonly file: RulesFile }
  | { readonly type: 'rules'; readonly step: 'commit' | 'forget'; readonly attempt: number };

/** What workers answer. */
type RulesAnswer =
  | { readonly type: 'rules'; readonly wish: 'current' }
  | { readonly type: 'rules'; readonly attempt: number; readonly prepared: boolean; readonly problem: string };

/** Milliseconds that all workers together may take to make rules ready. */
const prepareTimeout = 4000;

/**
 * Lets workers follow the rules that this process reads. New rules are first made ready everywhere, and only then put in
 * force: in all workers, or in none.
 */
export function shareRules(owned: () => OwnedRules, own: RulesFollower): RulesFollower {
  const waiting = new Map<string, (problem: string | undefined) => void>();
  /** Workers that have asked: one that is still loading hears nothing, and asks when it can. */
  const following = new Set<Worker>();
  let attempts = 0;
  cluster.on('message', (worker: Worker, message: RulesAnswer) => {
    if (message.type !== 'rules') return;
    if ('wish' in message) {
      if (!following.has(worker)) worker.once('exit', () => following.delete(worker));
      following.add(worker);
      tell(worker, { type: 'rules', step: 'current', attempt: 0, file: owned().current().file });
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
      // A worker that has ended is replaced by one that begins with what is then in force.
      const leave = (): void => finish(undefined);
      const late = new Error('a worker did not make them ready in time; they are tried again');
      const timer = setTimeout(() => end(() => reject(late)), prepareTimeout);
      waiting.set(key, finish);
      worker.once('exit', leave);
      tell(worker, message);
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
        for (const worker of workers) tell(worker, { type: 'rules', step: 'forget', attempt });
        throw error;
      }
      return {
        commit() {
          prepared.commit();
          // Also to workers that have started meanwhile: they ask for what they have not heard of.
          for (const worker of liveWorkers()) tell(worker, { type: 'rules', step: 'commit', attempt });
        },
      };
    },
  };
}

/** The rules that the primary process reads, seen from a worker. */
export function followRules(): RulesSource {
  return {
    follow: (follower) =>
      new Promise((resolve, reject) => {
        let ready: { readonly attempt: number; readonly rules: PreparedRules } | undefined;
        const prepare = async (file: RulesFile, attempt: number): Promise<void> => {
          ready = { attempt, rules: await follower.prepare(await parseRules(file), file) };
        };
        const ask = (): void => say({ type: 'rules', wish: 'current' });

        const take = async (message: RulesMessage): Promise<void> => {
          const { step, attempt } = message;
          if (step === 'current') {
            await prepare(message.file, attempt)
              .then(() => ready?.rules.commit())
              .then(resolve, reject);
          } else if (step === 'prepare') {
            const problem = await prepare(message.file, attempt).then(() => undefined, describe);
            say({ type: 'rules', attempt, prepared: problem === undefined, problem: problem ?? '' });
          } else if (step === 'commit') {
            if (ready?.attempt === attempt) ready.rules.commit();
            else ask();
          } else if (ready?.attempt === attempt) {
            ready = undefined;
          }
        };

        // In their order: what is made ready first must not be put in force last.
        let queue = Promise.resolve();
        process.on('message', (message: RulesMessage) => {
          if (message.type === 'rules') queue = queue.then(() => take(message));
        });
        ask();
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

function tell(worker: Worker, message: RulesMessage): void {
  if (worker.isConnected()) worker.send(message, () => {});
}

function say(answer: RulesAnswer): void {
  process.send?.(answer, undefined, {}, () => {});
}
