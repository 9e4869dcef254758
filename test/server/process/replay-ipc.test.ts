import { describe, expect, it } from 'vitest';
import { createNonces } from '../../../src/dpop/nonce.ts';
import { AccessError } from '../../../src/failures.ts';
import { createMetrics } from '../../../src/server/observation/metrics.ts';
import {
  createChannel,
  type PrimaryChannel,
  type PrimaryFunctions,
  type WorkerChannel,
} from '../../../src/server/process/channel.ts';
import {
  createPrimaryReplayStore,
  openSharedReplay,
  requestSharedReplay,
} from '../../../src/server/process/open-replay.ts';

const jkt = 'A'.repeat(43);
const now = (): number => Math.floor(Date.now() / 1000);

/** A primary and the store of one of its workers, without processes between them. */
async function connect({ silent = false } = {}) {
  /** How many proofs each message had. */
  const asked: number[] = [];
  const shared = openSharedReplay(createMetrics());
  const channel: PrimaryChannel = createChannel((message) => setImmediate(() => primary.receive(message)));
  const primary: WorkerChannel = createChannel((message) => channel.receive(message));
  const witnessAll: PrimaryFunctions['witness'] = (proofs) => {
    asked.push(proofs.length);
    return shared.witness(proofs);
  };
  primary.provide({ shareReplay: shared.shareReplay, ...(!silent && { witness: witnessAll }) });
  const open = async () => createPrimaryReplayStore(channel, await requestSharedReplay(channel));
  const witness = async (store: Awaited<ReturnType<typeof open>>, until: number, nonce?: string) => {
    const outcome = await store.witness(jkt, 'a', until, () =>
      nonce === undefined ? undefined : nonces.read(nonce, now()),
    );
    return outcome instanceof AccessError ? outcome.reason : outcome;
  };
  const nonces = createNonces({ secret: shared.shareReplay().nonceSecret });
  return { open, witness, nonces, generation: shared.shareReplay().generation, asked };
}

describe('the replay memory of the primary, seen from its workers', () => {
  it('a proof seen by one worker → not first for another, also for one that starts later', async () => {
    const { open, witness } = await connect();
    const one = await open();
    expect(await witness(one, now() + 310)).toBe(true);
    expect(await witness(await open(), now() + 310)).toBe(false);
  });

  it('a proof whose end has passed by the clock of the primary → proof_too_old, as in one process', async () => {
    const { open, witness, nonces, generation } = await connect();
    const store = await open();
    // The clock of the worker was set back after it accepted the proof, which has a nonce of this service.
    const nonce = nonces.issue(now(), generation);
    expect(await witness(store, now() - 2, nonce)).toBe('proof_too_old');
  });

  it('proofs of one turn → one message; each has its own outcome, also one that is there twice', async () => {
    const { open, asked } = await connect();
    const store = await open();
    const witnessed = ['a', 'b', 'a', 'c', 'b'].map((jti) => store.witness(jkt, jti, now() + 310));
    expect(await Promise.all(witnessed)).toEqual([true, true, false, true, false]);
    expect(await store.witness(jkt, 'd', now() + 310)).toBe(true);
    expect(asked).toEqual([5, 1]);
  });

  it('the primary does not respond → replay_store_unavailable for each proof of the message', async () => {
    const { open } = await connect({ silent: true });
    const store = await open();
    const witnessed = await Promise.all(['a', 'b'].map((jti) => store.witness(jkt, jti, now() + 310)));
    expect(witnessed.map((outcome) => outcome instanceof AccessError && outcome.reason)).toEqual([
      'replay_store_unavailable',
      'replay_store_unavailable',
    ]);
  });

  it('a proof from before the start → a nonce is required, and with it from any worker → first', async () => {
    const { open, witness, nonces } = await connect();
    const [one, other] = [await open(), await open()];
    expect(await witness(one, now() + 180)).toBe('proof_before_start');
    expect(await witness(other, now() + 180, nonces.issue(now(), one.generation))).toBe(true);
  });
});
