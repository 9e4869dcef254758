import type { TryOrder, TryResult } from '../page/try-wire.ts';
import type { Tries } from './tries.ts';

/** What `dev`, which runs the local provider, tells the service that it has started. */
export type FromDev =
  /** Calls can be tried. */
  { readonly type: 'tries_offered' } | { readonly type: 'tried'; readonly id: number; readonly result: TryResult };

/** What the service asks `dev` for. */
export interface ToDev {
  readonly type: 'try';
  readonly id: number;
  readonly order: TryOrder;
}

/** Milliseconds for a try, which is a few calls. */
const timeout = 15_000;
/** Tries at once. */
const maxPending = 4;

const unanswered: TryResult = {
  ...{ calls: [], command: '', remark: '' },
  problem: 'The local identity provider does not answer. Look at the terminal of portcullis dev.',
};
const tooMany: TryResult = { ...unanswered, problem: 'Other tries are still on their way. Wait for them.' };

/** Tries calls by asking the process that has started this one. */
export function openTries(): Tries {
  const pending = new Map<number, (result: TryResult) => void>();
  let nextId = 0;
  let isOffered = false;
  process.on('message', (message: FromDev) => {
    if (message.type === 'tries_offered') isOffered = true;
    if (message.type === 'tried') pending.get(message.id)?.(message.result);
  });
  return {
    isOffered: () => isOffered && process.connected,
    run(order) {
      if (pending.size >= maxPending) return Promise.resolve(tooMany);
      return new Promise((resolve) => {
        const id = nextId++;
        const finish = (result: TryResult): void => {
          clearTimeout(timer);
          pending.delete(id);
          resolve(result);
        };
        const timer = setTimeout(() => finish(unanswered), timeout);
        pending.set(id, finish);
        const message: ToDev = { type: 'try', id, order };
        process.send?.(message, undefined, {}, (error) => error !== null && finish(unanswered));
      });
    },
  };
}
