import cluster, { type Worker } from 'node:cluster';
import type { RulesFile } from '../../gate/rules-reader.ts';
import type { OwnedRules } from './open-rules.ts';
import { type PreparedRules, parseRules, RulesError, type RulesFollower, type RulesSource } from './rules-source.ts';

/** What the primary process tells workers of rules. */
type RulesMessage =
  | {
      readonly type: 'rules';
      readonly step: 'current' | 'prepare';
      readonly generation: number;
      readonly file: RulesFile;
    }
  | { readonly type: 'rules'; readonly step: 'commit' | 'forget'; readonly generation: number };

/** What workers answer. */
type RulesAnswer =
  | { readonly type: 'rules'; readonly wish: 'current' }
  | { readonly type: 'rules'; readonly generation: number; readonly prepared: boolean; readonly problem: string };

/** Milliseconds that all workers together may take to make rules ready. */
const prepareTimeout = 4000;

/**
 * Lets workers follow the rules that this process reads. New rules are first made ready everywhere, and only then put in
 * force: in all workers, or in none.
 */
export function shareRules(owned: () => OwnedRules, own: RulesFollower): RulesFollower {
  const waiting = new Map<string, (problem: string | undefined) => void>();
  cluster.on('message', (worker: Worker, message: RulesAnswer) => {
    if (message.type !== 'rules') return;
    if ('wish' in message) {
      const { file, generation } = owned().current();
      tell(worker, { type: 'rules', step: 'current', generation, file });
      return;
    }
    waiting.get(`${worker.id} ${message.generation}`)?.(message.prepared ? undefined : message.problem);
  });

  const prepareIn = (worker: Worker, message: RulesMessage): Promise<void> =>
    new Promise((resolve, reject) => {
      const key = `${worker.id} ${message.generation}`;
      const finish = (problem: string | undefined): void => {
        clearTimeout(timer);
        worker.off('exit', leave);
        waiting.delete(key);
        if (problem === undefined) resolve();
        else reject(new RulesError(problem));
      };
      // A worker that has ended is replaced by one that begins with what is then in force.
      const leave = (): void => finish(undefined);
      const timer = setTimeout(
        () => finish('a worker did not make them ready in time; they are tried again'),
        prepareTimeout,
      );
      waiting.set(key, finish);
      worker.once('exit', leave);
      tell(worker, message);
    });

  return {
    async prepare(rules, file) {
      const prepared = await own.prepare(rules, file);
      const generation = owned().current().generation + 1;
      const workers = liveWorkers();
      try {
        await Promise.all(
          workers.map((worker) => prepareIn(worker, { type: 'rules', step: 'prepare', generation, file })),
        );
      } catch (error) {
        for (const worker of workers) tell(worker, { type: 'rules', step: 'forget', generation });
        throw error;
      }
      return {
        commit() {
          prepared.commit();
          // Also to workers that have started meanwhile: they ask for what they have not heard of.
          for (const worker of liveWorkers()) tell(worker, { type: 'rules', step: 'commit', generation });
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
        let ready: { readonly generation: number; readonly rules: PreparedRules } | undefined;
        const prepare = async (file: RulesFile, generation: number): Promise<void> => {
          ready = { generation, rules: await follower.prepare(await parseRules(file), file) };
        };
        const ask = (): void => say({ type: 'rules', wish: 'current' });

        const take = async (message: RulesMessage): Promise<void> => {
          const { step, generation } = message;
          if (step === 'current') {
            await prepare(message.file, generation)
              .then(() => ready?.rules.commit())
              .then(resolve, reject);
          } else if (step === 'prepare') {
            const problem = await prepare(message.file, generation).then(() => undefined, describe);
            say({ type: 'rules', generation, prepared: problem === undefined, problem: problem ?? '' });
          } else if (step === 'commit') {
            if (ready?.generation === generation) ready.rules.commit();
            else ask();
          } else if (ready?.generation === generation) {
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
