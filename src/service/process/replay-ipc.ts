import { randomBytes } from 'node:crypto';
import { isAfterStart, openHorizon } from '../../dpop/horizon.ts';
import { createMemoryReplayStore, type MemoryReplayStore, type ReplayStore } from '../../dpop/replay.ts';
import { AccessError, type Reason } from '../../failures.ts';
import type { SharedReplay, ToPrimary, ToWorker, WitnessOutcome } from './messages.ts';

/** The channel of a worker to its primary process. */
export interface PrimaryChannel {
  send(message: ToPrimary): void;
  onMessage(listener: (message: ToWorker) => void): void;
}

/** The replay memory of the primary process: one for all workers, whenever they were started. */
export interface PrimaryReplay {
  readonly store: MemoryReplayStore;
  readonly shared: SharedReplay;
}

/** Milliseconds; the same bound as for a remote store. */
const witnessTimeout = 250;

const refusals: Readonly<Record<Exclude<WitnessOutcome, 'first' | 'seen'>, Reason>> = {
  full: 'replay_store_full',
  late: 'proof_too_old',
  failed: 'replay_store_unavailable',
};

/** Opens the replay memory of the primary process. */
export function openPrimaryReplay(): PrimaryReplay {
  const nonceSecret = randomBytes(32).toString('base64url');
  // The workers judge the horizon: they know the nonces.
  return {
    store: createMemoryReplayStore({ since: 0 }),
    shared: { ...openHorizon(Date.now() / 1000), nonceSecret },
  };
}

/** What the replay memory says to a worker that asks. */
export function answerWitness(
  { store }: PrimaryReplay,
  { jkt, jti, until }: { readonly jkt: string; readonly jti: string; readonly until: number },
): WitnessOutcome {
  const first = store.witness(jkt, jti, until);
  if (typeof first === 'boolean') return first ? 'first' : 'seen';
  return first.reason === 'replay_store_full' ? 'full' : 'late';
}

/** Asks the primary process for what all workers share; resolves with its answer. */
export function askForReplay(channel: PrimaryChannel): Promise<SharedReplay> {
  return new Promise((resolve) => {
    channel.onMessage((message) => {
      if (message.type === 'replay_shared') resolve(message);
    });
    channel.send({ type: 'share_replay' });
  });
}

/** The replay memory of the primary process, seen from a worker: one message there and one back. */
export function createPrimaryReplayStore(channel: PrimaryChannel, shared: SharedReplay): ReplayStore {
  const pending = new Map<number, (outcome: WitnessOutcome) => void>();
  let nextId = 0;
  channel.onMessage((message) => {
    if (message.type === 'witnessed') pending.get(message.id)?.(message.outcome);
  });
  return {
    generation: shared.generation,
    witness(jkt, jti, until, readNonce) {
      if (!isAfterStart(shared, Date.now() / 1000, { until, readNonce })) return new AccessError('proof_before_start');
      return new Promise((resolve) => {
        const id = nextId++;
        const timer = setTimeout(() => finish('failed'), witnessTimeout);
        const finish = (outcome: WitnessOutcome): void => {
          clearTimeout(timer);
          pending.delete(id);
          if (outcome === 'first' || outcome === 'seen') resolve(outcome === 'first');
          else resolve(new AccessError(refusals[outcome]));
        };
        pending.set(id, finish);
        channel.send({ type: 'witness', id, jkt, jti, until });
      });
    },
  };
}
