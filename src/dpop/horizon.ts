import { randomInt } from 'node:crypto';
import type { NonceOrigin } from './nonce.ts';
import { proofLifetime } from './proof-checks.ts';

/** Reads the nonce of a proof: one of this service that is still good, or `undefined`. Called only if it matters. */
export type ReadNonce = () => NonceOrigin | undefined;

/** The time before which a replay store may have forgotten, or has never known, which proofs were used. */
export interface Horizon {
  /** Seconds since the epoch: a proof with an earlier `iat` may have been used before. */
  readonly since: number;
  /** A random number below 2^32 that stands for this horizon: nonces carry it, and so show that they are younger. */
  readonly generation: number;
}

/** Seconds by which the clock of another instance may be ahead of this one. */
const nonceLead = 1;

/** The horizon of a store that begins empty; proofs that were made in the second `start` may have been used before it. */
export function openHorizon(start: number): Horizon {
  return { since: Math.floor(start) + 1, generation: randomInt(2 ** 32) };
}

export interface ProofAge {
  /** Seconds since the epoch: the last moment at which the proof is accepted. */
  readonly until: number;
  readonly readNonce: ReadNonce | undefined;
}

/** Reports whether a proof was surely made after the horizon: by its `iat`, or because its nonce was issued after it. */
export function isAfter({ since, generation }: Horizon, { until, readNonce }: ProofAge): boolean {
  return until - proofLifetime >= since || readNonce?.()?.generation === generation;
}

/**
 * Like {@link isAfter}, for a store that only one instance uses. A nonce of another instance counts if it was issued later
 * than the horizon: that instance may have required it.
 */
export function isAfterStart(horizon: Horizon, now: number, { until, readNonce }: ProofAge): boolean {
  const { since, generation } = horizon;
  if (until - proofLifetime >= since) return true;
  const nonce = readNonce?.();
  if (nonce === undefined) return false;
  return nonce.generation === generation || (nonce.issuedAt >= since && nonce.issuedAt <= now + nonceLead);
}
