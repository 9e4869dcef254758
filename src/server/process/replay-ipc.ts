import { randomBytes } from 'node:crypto';
import {
  createMemoryReplayStore,
  isAfterStart,
  type MemoryReplayStore,
  openHorizon,
  type ReplayStore,
  type Witnessed,
} from '../../dpop/replay.ts';
import type { Reason } from '../../failures.ts';
import { Refused } from '../../refused.ts';
import {
  createPendingRequests,
  type SharedReplay,
  type ToPrimary,
  type ToWorker,
  type WitnessedProof,
  type WitnessOutcome,
} from './messages.ts';

export interface PrimaryChannel {
  send(message: ToPrimary): void;
  onMessage(listener: (message: ToWorker) => void): void;
}

/** The replay memory that all workers share, in the primary process. */
export interface PrimaryReplay {
  readonly store: MemoryReplayStore;
  readonly shared: SharedReplay;
}

/** Milliseconds, as for a remote store. */
const witnessTimeout = 250;

const refusals: Readonly<Record<Exclude<WitnessOutcome, 'first' | 'seen'>, Reason>> = {
  full: 'replay_store_full',
  late: 'proof_too_old',
};

export function openPrimaryReplay(): PrimaryReplay {
  const nonceSecret = randomBytes(32).toString('base64url');
  // The workers check the horizon, because they know the nonces.
  return {
    store: createMemoryReplayStore({ since: 0 }),
    shared: { ...openHorizon(Date.now() / 1000), nonceSecret },
  };
}

export function witnessProof({ store }: PrimaryReplay, { jkt, jti, until }: WitnessedProof): WitnessOutcome {
  const first = store.witness(jkt, jti, until);
  if (typeof first === 'boolean') return first ? 'first' : 'seen';
  return first.reason === 'replay_store_full' ? 'full' : 'late';
}

/** Requests the facts that all workers share from the primary process. */
export function requestSharedReplay(channel: PrimaryChannel): Promise<SharedReplay> {
  return new Promise((resolve) => {
    channel.onMessage((message) => {
      if (message.type === 'replay_shared') resolve(message);
    });
    channel.send({ type: 'share_replay' });
  });
}

interface WitnessBatch {
  readonly proofs: WitnessedProof[];
  readonly resolves: ((witnessed: Witnessed) => void)[];
}

/**
 * The replay memory of the primary process, seen from a worker. The proofs of one event-loop iteration are sent in one
 * message: a message costs as much as half a signature check.
 */
export function createPrimaryReplayStore(channel: PrimaryChannel, shared: SharedReplay): ReplayStore {
  const pending = createPendingRequests<readonly WitnessOutcome[]>(witnessTimeout);
  let next: WitnessBatch | undefined;
  channel.onMessage((message) => {
    if (message.type === 'witnessed') pending.settle(message.id, message.outcomes);
  });
  const send = async ({ proofs, resolves }: WitnessBatch): Promise<void> => {
    next = undefined;
    const outcomes = await pending.request((id) => channel.send({ type: 'witness', id, proofs }));
    for (const [index, resolve] of resolves.entries()) resolve(readOutcome(outcomes?.[index]));
  };

  return {
    generation: shared.generation,
    witness(jkt, jti, until, readNonce) {
      if (!isAfterStart(shared, Date.now() / 1000, { until, readNonce })) return new Refused('proof_before_start');
      if (next === undefined) {
        next = { proofs: [], resolves: [] };
        setImmediate(send, next);
      }
      const { proofs, resolves } = next;
      proofs.push({ jkt, jti, until });
      return new Promise((resolve) => resolves.push(resolve));
    },
  };
}

/** `undefined`: the primary process has not responded in time. */
function readOutcome(outcome: WitnessOutcome | undefined): Witnessed {
  if (outcome === undefined) return new Refused('replay_store_unavailable');
  return outcome === 'first' || outcome === 'seen' ? outcome === 'first' : new Refused(refusals[outcome]);
}
