import type { ReplayStore } from '../../dpop/replay.ts';
import { AccessError, type Reason } from '../../failures.ts';
import type { ToPrimary, ToWorker } from './messages.ts';

/** The channel of a worker to its primary process. */
export interface PrimaryChannel {
  send(message: ToPrimary): void;
  onMessage(listener: (message: ToWorker) => void): void;
}

/** Milliseconds; the same bound as for a remote store. */
const witnessTimeout = 250;

const outcomes: Readonly<Record<'full' | 'failed', Reason>> = {
  full: 'replay_store_full',
  failed: 'replay_store_unavailable',
};

/** The replay memory of the primary process, seen from a worker: one message there and one back. */
export function createPrimaryReplayStore(channel: PrimaryChannel): ReplayStore {
  const pending = new Map<number, (outcome: 'first' | 'seen' | 'full' | 'failed') => void>();
  let nextId = 0;
  channel.onMessage((message) => {
    if (message.type === 'witnessed') pending.get(message.id)?.(message.outcome);
  });
  return {
    witness: (jkt, jti, until) =>
      new Promise((resolve) => {
        const id = nextId++;
        const timer = setTimeout(() => finish('failed'), witnessTimeout);
        const finish = (outcome: 'first' | 'seen' | 'full' | 'failed'): void => {
          clearTimeout(timer);
          pending.delete(id);
          if (outcome === 'first' || outcome === 'seen') resolve(outcome === 'first');
          else resolve(new AccessError(outcomes[outcome]));
        };
        pending.set(id, finish);
        channel.send({ type: 'witness', id, jkt, jti, until });
      }),
  };
}
