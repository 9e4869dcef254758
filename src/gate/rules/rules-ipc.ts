import cluster, { type Worker } from 'node:cluster';
import { createPendingRequests, type PendingRequests } from '../../server/process/pending-requests.ts';
import { messageOf } from '../../shown-text.ts';
import type { OwnedRules } from './open-rules.ts';
import { RulesError } from './rules.ts';
import { type PreparedRules, parseRules, type RulesFollower, type RulesSource } from './rules-files.ts';
import type { RulesFile } from './rules-reader.ts';

/** Each attempt has its own number, so that what is left of an attempt does not count for the next one. */
type RulesMessage = { readonly type: 'rules' } & (
  | { readonly step: 'current'; readonly file: RulesFile }
  | { readonly step: 'prepare'; readonly attempt: number; readonly id: number; readonly file: RulesFile }
  | { readonly step: 'commit'; readonly attempt: number; readonly id: number }
  | { readonly step: 'discard'; readonly attempt: number }
);

/** `id`: of the message that has an effect now. The problem is empty if there is none. */
type RulesReply =
  | { readonly type: 'rules'; readonly request: 'current' }
  | { readonly type: 'rules'; readonly id: number; readonly problem: string };

/** Milliseconds. A worker that hangs is killed before the second one. */
const prepareTimeout = 4000;
const commitTimeout = 10_000;

/**
 * Shares the rules that this process reads with its workers. New rules are prepared in all processes first, and then
 * become active in all workers or in none.
 */
export function shareRules(owned: () => OwnedRules, own: RulesFollower): RulesFollower {
  /** Workers that requested the rules; a worker that is still loading requests them later. */
  const following = new Map<Worker, PendingRequests<string>>();
  let attempts = 0;
  cluster.on('message', (worker: Worker, message: RulesReply) => {
    if (message.type !== 'rules') return;
    if ('id' in message) {
      following.get(worker)?.settle(message.id, message.problem);
      return;
    }
    if (!following.has(worker)) following.set(worker, createPendingRequests());
    send(worker, { type: 'rules', step: 'current', file: owned().current() });
  });
  cluster.on('exit', (worker) => {
    following.get(worker)?.close();
    following.delete(worker);
  });

  return {
    async prepare(rules, file) {
      const prepared = await own.prepare(rules, file);
      const attempt = ++attempts;
      const workers = [...following];
      const prepareIn = async ([worker, pending]: (typeof workers)[number]): Promise<void> => {
        const problem = await pending.request(prepareTimeout, (id) =>
          send(worker, { type: 'rules', step: 'prepare', attempt, id, file }),
        );
        // The replacement of an ended worker starts with the active rules.
        if (problem === '' || !following.has(worker)) return;
        if (problem !== undefined) throw new RulesError(problem);
        throw new Error('a worker was not ready in time; the rules are tried again');
      };
      try {
        await Promise.all(workers.map(prepareIn));
      } catch (error) {
        for (const [worker] of workers) send(worker, { type: 'rules', step: 'discard', attempt });
        throw error;
      }
      return {
        async commit() {
          // A worker that started meanwhile requests the rules that it does not have.
          const committed = Array.from(following, ([worker, pending]) =>
            pending.request(commitTimeout, (id) => send(worker, { type: 'rules', step: 'commit', attempt, id })),
          );
          await prepared.commit();
          await Promise.all(committed);
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
        const prepare = async (file: RulesFile): Promise<PreparedRules> =>
          follower.prepare(await parseRules(file), file);
        const requestCurrent = (): void => reply({ type: 'rules', request: 'current' });

        const apply = async (message: RulesMessage): Promise<void> => {
          if (message.step === 'current') {
            await prepare(message.file)
              .then((rules) => rules.commit())
              .then(resolve, reject);
            return;
          }
          const { attempt } = message;
          if (message.step === 'prepare') {
            const problem = await prepare(message.file).then((rules) => {
              ready = { attempt, rules };
              return '';
            }, messageOf);
            reply({ type: 'rules', id: message.id, problem });
            return;
          }
          const rules = ready?.attempt === attempt ? ready.rules : undefined;
          ready = undefined;
          if (message.step === 'discard') return;
          if (rules === undefined) requestCurrent();
          await rules?.commit();
          reply({ type: 'rules', id: message.id, problem: '' });
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

function send(worker: Worker, message: RulesMessage): void {
  if (worker.isConnected()) worker.send(message, () => {});
}

function reply(message: RulesReply): void {
  process.send?.(message, undefined, {}, () => {});
}
