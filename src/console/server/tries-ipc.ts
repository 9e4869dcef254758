import type { TryOptions, TryResult } from '../page/try-wire.ts';
import type { Tries } from './tries.ts';

export type FromDev =
  | { readonly type: 'tries_offered' }
  | { readonly type: 'tried'; readonly id: number; readonly result: TryResult };

export interface ToDev {
  readonly type: 'try';
  readonly id: number;
  readonly options: TryOptions;
}

/** Limit of a try, in milliseconds. A try is up to three requests. */
const timeout = 15_000;
const maxPending = 4;

const noResponse: TryResult = {
  ...{ requests: [], command: '', remark: '' },
  problem: 'The local identity provider does not respond. See the terminal of portcullis dev.',
};
const tooMany: TryResult = { ...noResponse, problem: 'Too many tries are in flight. Wait until they complete.' };

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
    run(options) {
      if (pending.size >= maxPending) return Promise.resolve(tooMany);
      return new Promise((resolve) => {
        const id = nextId++;
        const finish = (result: TryResult): void => {
          clearTimeout(timer);
          pending.delete(id);
          resolve(result);
        };
        const timer = setTimeout(() => finish(noResponse), timeout);
        pending.set(id, finish);
        const message: ToDev = { type: 'try', id, options };
        process.send?.(message, undefined, {}, (error) => error !== null && finish(noResponse));
      });
    },
  };
}
