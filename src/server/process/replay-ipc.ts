import { randomBytes } from 'node:crypto';
import { isAfterStart, openHorizon } from '../../dpop/horizon.ts';
import {
  createMemoryReplayStore,
  type MemoryReplayStore,
  type ReplayStore,
  type Witnessed,
} from '../../dpop/replay.ts';
import { AccessError, type Reason } from '../../failures.ts';
import type { SharedReplay, ToPrimary, ToWorker, WitnessedProof, WitnessOutcome } from './messages.ts';

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
export function answerWitness({ store }: PrimaryReplay, { jkt, jti, until }: WitnessedProof): WitnessOutcome {
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

/** Proofs that are asked for together, and who waits for the outcome of each. */
interface Question {
  readonly proofs: WitnessedProof[];
  readonly resolves: ((witnessed: Witnessed) => void)[];
}

/**
 * The replay memory of the primary process, seen from a worker. The proofs of one turn of the event loop go there in one
 * message, and come back in one: a message costs as much as half a signature check.
 */
export function createPrimaryReplayStore(channel: PrimaryChannel, shared: SharedReplay): ReplayStore {
  const pending = new Map<number, Question>();
  let next: Question | undefined;
  let nextId = 0;

  channel.onMessage((message) => {
    if (message.type !== 'witnessed') return;
    const question = pending.get(message.id);
    pending.delete(message.id);
    for (const [index, resolve] of question?.resolves.entries() ?? []) resolve(readOutcome(message.outcomes[index]));
  });

  const ask = (question: Question): void => {
    const id = nextId++;
    next = undefined;
    pending.set(id, question);
    channel.send({ type: 'witness', id, proofs: question.proofs });
    setTimeout(() => {
      if (!pending.delete(id)) return;
      for (const resolve of question.resolves) resolve(readOutcome(undefined));
    }, witnessTimeout).unref();
  };

  return {
    generation: shared.generation,
    witness(jkt, jti, until, readNonce) {
      if (!isAfterStart(shared, Date.now() / 1000, { until, readNonce })) return new AccessError('proof_before_start');
      if (next === undefined) {
        next = { proofs: [], resolves: [] };
        setImmediate(ask, next);
      }
      const { proofs, resolves } = next;
      proofs.push({ jkt, jti, until });
      return new Promise((resolve) => resolves.push(resolve));
    },
  };
}

/** What an outcome means for a request; none is there if the primary process has not answered in time. */
function readOutcome(outcome: WitnessOutcome | undefined): Witnessed {
  if (outcome === undefined) return new AccessError('replay_store_unavailable');
  return outcome === 'first' || outcome === 'seen' ? outcome === 'first' : new AccessError(refusals[outcome]);
}
