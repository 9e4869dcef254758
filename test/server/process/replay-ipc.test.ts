import { describe, expect, it } from 'vitest';
import { createNonces } from '../../../src/dpop/nonce.ts';
import { AccessError } from '../../../src/failures.ts';
import type { ToPrimary, ToWorker } from '../../../src/server/process/messages.ts';
import {
  createPrimaryReplayStore,
  openPrimaryReplay,
  type PrimaryChannel,
  requestSharedReplay,
  witnessProof,
} from '../../../src/server/process/replay-ipc.ts';

const jkt = 'A'.repeat(43);
const now = (): number => Math.floor(Date.now() / 1000);

/** A primary and the store of one of its workers, without processes between them. */
async function connect({ silent = false } = {}) {
  /** How many proofs each message had. */
  const asked: number[] = [];
  const primary = openPrimaryReplay();
  const listeners: ((message: ToWorker) => void)[] = [];
  const tell = (message: ToWorker): void => {
    for (const listen of [...listeners]) listen(message);
  };
  const answer = (message: ToPrimary): void => {
    if (message.type === 'share_replay') tell({ type: 'replay_shared', ...primary.shared });
    if (message.type !== 'witness') return;
    asked.push(message.proofs.length);
    if (!silent) {
      tell({
        type: 'witnessed',
        id: message.id,
        outcomes: message.proofs.map((proof) => witnessProof(primary, proof)),
      });
    }
  };
  const channel: PrimaryChannel = {
    onMessage: (listener) => void listeners.push(listener),
    send: (message) => setImmediate(answer, message),
  };
  const open = async () => createPrimaryReplayStore(channel, await requestSharedReplay(channel));
  const witness = async (store: Awaited<ReturnType<typeof open>>, until: number, nonce?: string) => {
    const outcome = await store.witness(jkt, 'a', until, () =>
      nonce === undefined ? undefined : nonces.read(nonce, now()),
    );
    return outcome instanceof AccessError ? outcome.reason : outcome;
  };
  const nonces = createNonces({ secret: primary.shared.nonceSecret });
  return { open, witness, nonces, primary, asked };
}

describe('the replay memory of the primary, seen from its workers', () => {
  it('a proof seen by one worker → not first for another, also for one that starts later', async () => {
    const { open, witness } = await connect();
    const one = await open();
    expect(await witness(one, now() + 310)).toBe(true);
    expect(await witness(await open(), now() + 310)).toBe(false);
  });

  it('a proof whose end has passed by the clock of the primary → proof_too_old, as in one process', async () => {
    const { open, witness, nonces, primary } = await connect();
    const store = await open();
    // The clock of the worker was set back after it accepted the proof, which has a nonce of this service.
    const nonce = nonces.issue(now(), primary.shared.generation);
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
