import cluster, { type Worker } from 'node:cluster';
import type { OwnedRules } from './open-rules.ts';
import { RulesError } from './rules.ts';
import { type PreparedRules, parseRules, type RulesFollower, type RulesSource } from './rules-files.ts';
import type { RulesFile } from './rules-reader.ts';

type RulesMessage =
  /** Each attempt has its own number, so that a late reply does not count for the next attempt. */
  | { readonly type: 'rules'; readonly step: 'current' | 'prepare'; readonly attempt: number; readonly file: RulesFile }
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
  /** Workers that requested the rules; a worker that is still loading requests them later. */
  const following = new WeakSet<Worker>();
  let attempts = 0;
  cluster.on('message', (worker: Worker, message: RulesReply) => {
    if (message.type !== 'rules' || !('request' in message)) return;
    following.add(worker);
    send(worker, { type: 'rules', step: 'current', attempt: 0, file: owned().current().file });
  });

  return {
    async prepare(rules, file) {
      const prepared = await own.prepare(rules, file);
      const attempt = ++attempts;
      const workers = liveWorkers().filter((worker) => following.has(worker));
      try {
        await Promise.all(workers.map((worker) => prepareIn(worker, attempt, file)));
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

function prepareIn(worker: Worker, attempt: number, file: RulesFile): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (error?: Error): void => {
      clearTimeout(timer);
      worker.off('exit', leave).off('message', receive);
      if (error === undefined) resolve();
      else reject(error);
    };
    const receive = (reply: RulesReply): void => {
      if (reply.type !== 'rules' || !('prepared' in reply) || reply.attempt !== attempt) return;
      end(reply.prepared ? undefined : new RulesError(reply.problem));
    };
    // The replacement of an ended worker starts with the active rules.
    const leave = (): void => end();
    const late = new Error('a worker was not ready in time; the rules are tried again');
    const timer = setTimeout(() => end(late), prepareTimeout);
    worker.once('exit', leave).on('message', receive);
    send(worker, { type: 'rules', step: 'prepare', attempt, file });
  });
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
            const problem = await prepare(message.file, attempt).then(() => undefined, describeCause);
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

function describeCause(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown';
}

function liveWorkers(): readonly Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker?.isConnected() === true) as readonly Worker[]; // filtered
}

function send(worker: Worker, message: RulesMessage): void {
  if (worker.isConnected()) worker.send(message, () => {});
}

function reply(message: RulesReply): void {
  process.send?.(message, undefined, {}, () => {});
}
