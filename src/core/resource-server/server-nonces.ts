import { randomBytes } from 'node:crypto';
import { createNonces, type Nonces } from '../dpop/nonce.ts';
import type { ReadNonce, ReplayStore } from '../dpop/replay.ts';
import type { AccessError, Failure } from '../failures.ts';
import { Refused } from '../refused.ts';
import type { DpopOptions } from './options.ts';

/** Opens the nonces of a server: configured nonces, and nonces required after a start; `now` gives seconds since the epoch. */
export function openServerNonces(
  { nonces, nonceDemand = 'always' }: DpopOptions,
  replay: ReplayStore | 'off',
  now: () => number,
) {
  let ours = nonces;
  // Without a secret of the caller's, only this process understands its nonces: of no use where others share the store.
  const canAsk = ours !== undefined || (replay !== 'off' && replay.sharedBy !== 'instances');
  // Made when one is first needed: most processes of serverless runtimes need none.
  const find = (): Nonces => {
    ours ??= createNonces({ secret: randomBytes(32) });
    return ours;
  };
  const issue = (seconds: number): string => find().issue(seconds, replay === 'off' ? undefined : replay.generation);
  /** Nonces required in each proof; `undefined` if none are. */
  const demanded =
    nonces === undefined || nonceDemand === 'after-start'
      ? undefined
      : { issue, check: (nonce: string, seconds: number) => nonces.check(nonce, seconds) };

  return {
    demanded,
    /** Returns the reader of a proof's nonce for the replay store, if the store needs it. */
    reader: (nonce: string | undefined): ReadNonce | undefined =>
      nonce === undefined || !canAsk ? undefined : () => find().read(nonce, now()),
    /** The nonce that goes with a refusal, if any. */
    issueFor({ status, error }: Pick<Failure, 'error'> & { readonly status: number }): string | undefined {
      // A server that requires nonces sends one with every 401, so that the next request needs no second attempt.
      const isDue = error === 'use_dpop_nonce' || (status === 401 && demanded !== undefined);
      return isDue && canAsk ? issue(now()) : undefined;
    },
    /** Converts a refusal of the replay store: a nonce that other instances do not understand becomes a 503. */
    refuse(refusal: AccessError): AccessError {
      if (refusal.reason !== 'proof_before_start' || canAsk) return refusal;
      const cause = new Error('Redis may have forgotten proofs of that time');
      return new Refused('replay_store_unavailable', { cause });
    },
  };
}
