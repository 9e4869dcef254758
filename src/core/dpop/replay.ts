import { hash, randomBytes, randomInt } from 'node:crypto';
import { ask } from '../attempt.ts';
import { AccessError } from '../failures.ts';
import { callable, checkOptionMembers } from '../option-members.ts';
import { Refused } from '../refused.ts';
import type { NonceOrigin } from './nonce.ts';
import { proofLifetime } from './proof-checks.ts';

/** Reads the nonce of a proof: one of this service that is still good, or `undefined`. Called only if it matters. */
export type ReadNonce = () => NonceOrigin | undefined;

/** True for the first use of a proof, or the reason why that is unknown. */
export type Witnessed = boolean | AccessError;

/** Remembers used proofs (RFC 9449 §11.1). */
export interface ReplayStore {
  /**
   * Reports whether this `jti` of this key is new; if so it is recorded until `until` (seconds since the epoch, inclusive).
   * An `AccessError` if the store cannot tell; an error, a rejection, more than 3 s or any other result counts as
   * `replay_store_unavailable`. Only `true` lets a proof pass. A store that may have lost proofs of that time,
   * or has not seen them, returns `proof_before_start` unless `readNonce` gives a nonce that is younger than the loss: the
   * client gets a nonce, and repeats the request.
   */
  witness(jkt: string, jti: string, until: number, readNonce?: ReadNonce): Witnessed | Promise<Witnessed>;
  /** A number below 2^32 that changes whenever the store may have lost proofs: nonces carry it. Default: it loses none. */
  readonly generation?: number;
  /** `instances` if others use the same store: they must understand the nonces that it requires. Default: `process`. */
  readonly sharedBy?: 'process' | 'instances';
}

/**
 * Queries a replay store for a proof. An application's store may return anything: what is neither a boolean nor an
 * `AccessError` tells nothing, as an error or a promise that takes more than 3 s, and the client may try again.
 */
export function askWitness(
  replay: ReplayStore,
  { jkt, jti, expires }: { readonly jkt: string; readonly jti: string; readonly expires: number },
  readNonce: ReadNonce | undefined,
): Witnessed | Promise<Witnessed> {
  return ask(() => replay.witness(jkt, jti, expires, readNonce), readWitnessed, refuseUnwitnessed);
}

function readWitnessed(answer: unknown): Witnessed {
  if (typeof answer === 'boolean' || answer instanceof AccessError) return answer;
  return refuseUnwitnessed(new TypeError('replay: witness must return true, false or an AccessError'));
}

function refuseUnwitnessed(cause: unknown): Witnessed {
  return cause instanceof AccessError ? cause : new Refused('replay_store_unavailable', { cause });
}

/** A replay store in the memory of this process. */
export interface MemoryReplayStore extends ReplayStore {
  /**
   * Synchronous {@link ReplayStore.witness}. `replay_store_full`; `proof_too_old` if `until` has passed by the clock of the
   * store, which may have forgotten the proof; `proof_before_start` for a proof made before the store.
   */
  witness(jkt: string, jti: string, until: number, readNonce?: ReadNonce): Witnessed;
  /** Random number of this store: nonces with it are younger than the store. */
  readonly generation: number;
  /** Number of recorded proofs. */
  readonly size: number;
}

/** Options of {@link createMemoryReplayStore}. */
export interface MemoryReplayOptions {
  /** Proofs that can be remembered at a time, at about 80 bytes each. Default 1 000 000. */
  readonly capacity?: number;
  /** Clock for proofs, in seconds since the epoch. Default: the clock of this host. */
  readonly now?: () => number;
  /**
   * Seconds since the epoch. A proof with this `iat` or an earlier one may have been used before the store was there: it
   * needs a nonce that is younger. Default: the second in which the store is created, or first used if the clock has no time
   * before (module top on Workers). 0 turns that off, for tests, and for processes that live for a few requests only.
   */
  readonly since?: number;
}

const maxCapacity = 100_000_000;

/**
 * Creates a replay store that refuses when it is full and evicts nothing that is alive. A proof is recorded as 96 bits of a
 * hash under a key of this process: the chance that a new proof collides with one of a million others is below 10^-22, and
 * no client can search for such a pair. Throws `TypeError` for an invalid capacity or `since`.
 */
export function createMemoryReplayStore(options: MemoryReplayOptions = {}): MemoryReplayStore {
  const members = { capacity: true, since: true, now: callable } as const;
  checkOptionMembers<MemoryReplayOptions>('createMemoryReplayStore', options, members);
  const { capacity = 1_000_000, now = () => Date.now() / 1000 } = options;
  if (!Number.isInteger(capacity) || capacity < 1 || capacity > maxCapacity) {
    throw new TypeError(`capacity: write a whole number from 1 to ${maxCapacity}`);
  }
  const { since = now() } = options;
  if (!(Number.isFinite(since) && since >= 0)) throw new TypeError('since: write seconds since the epoch, 0 or more');
  const seen = createUsedProofs(capacity);
  let opened: { readonly horizon: Horizon; readonly key: string } | undefined;
  // On first use: at module top, Workers have neither random values nor the time.
  const open = () => {
    if (opened === undefined) {
      const start = options.since === undefined && since === 0 ? now() : since;
      // Proofs that were made in the second `start` may have been used before it.
      const horizon = { since: Math.floor(start) + 1, generation: randomInt(2 ** 32) };
      opened = { horizon, key: randomBytes(32).toString('base64url') };
    }
    return opened;
  };

  return {
    get generation() {
      return open().horizon.generation;
    },
    witness(jkt, jti, until, readNonce) {
      const { horizon, key } = open();
      const seconds = now();
      seen.expire(Math.floor(seconds));
      if (!isAfterStart(horizon, seconds, { until, readNonce })) return new Refused('proof_before_start');
      const outcome = seen.add(fingerprint(`${key}${replayName(jkt, jti)}`), Math.floor(until));
      if (outcome === 'full') return new Refused('replay_store_full');
      if (outcome === 'late') return new Refused('proof_too_old');
      return outcome === 'added';
    },
    get size() {
      seen.expire(Math.floor(now()));
      return seen.size();
    },
  };
}

/** Returns the hash input: one string for a `jkt` and a `jti`, and another for every other pair. */
export function replayName(jkt: string, jti: string): string {
  return `${jkt.length}.${jkt}${jti}`;
}

/** Returns the first 96 bits of the SHA-256 of a string, a character for each byte. A longer part would keep the whole hash. */
function fingerprint(text: string): string {
  return hash('sha256', text, 'binary').slice(0, 12);
}

/** Parts of the used proofs: a map that grows is copied, and a small one delays no request. */
const partCount = 16;
/** Seconds whose proofs share a map, which is dropped as a whole. */
const spanSeconds = 16;

/** Creates an empty set of fingerprints, each of which counts until its last second is over and never less. */
function createUsedProofs(capacity: number) {
  /** Last seconds by fingerprint, in maps by time. */
  const parts = Array.from({ length: partCount }, () => new Map<number, Map<string, number>>());
  const countBySecond = new Map<number, number>();
  let size = 0;
  let horizon = Number.NEGATIVE_INFINITY;

  return {
    /** Adds a fingerprint until the end of the second `until`: `late` if that is over, so that it may be forgotten. */
    add(print: string, until: number): 'added' | 'present' | 'full' | 'late' {
      if (until < horizon) return 'late';
      const part = parts[print.charCodeAt(0) % partCount] as Map<number, Map<string, number>>; // the index is below the count
      for (const [span, known] of part) {
        if ((span + 1) * spanSeconds <= horizon) part.delete(span);
        else if ((known.get(print) ?? Number.NaN) >= horizon) return 'present';
      }
      if (size === capacity) return 'full';
      const span = Math.floor(until / spanSeconds);
      const own = part.get(span) ?? new Map<string, number>();
      part.set(span, own.set(print, until));
      countBySecond.set(until, (countBySecond.get(until) ?? 0) + 1);
      size++;
      return 'added';
    },
    /** Ends what was added until an earlier second. Never back: a clock set back must not make used proofs new. */
    expire(now: number): void {
      if (now <= horizon) return;
      horizon = now;
      for (const [until, count] of countBySecond) {
        if (until >= now) continue;
        countBySecond.delete(until);
        size -= count;
      }
    },
    size: () => size,
  };
}

/** The time before which a replay store may have forgotten, or has never known, which proofs were used. */
export interface Horizon {
  /** Seconds since the epoch: a proof with an earlier `iat` may have been used before. */
  readonly since: number;
  /** A random number below 2^32 that stands for this horizon: nonces carry it, and so show that they are younger. */
  readonly generation: number;
}

/** Seconds by which the clock of another instance may be ahead of this one. */
const nonceLead = 1;

interface ProofAge {
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
function isAfterStart(horizon: Horizon, now: number, { until, readNonce }: ProofAge): boolean {
  const { since, generation } = horizon;
  if (until - proofLifetime >= since) return true;
  const nonce = readNonce?.();
  if (nonce === undefined) return false;
  return nonce.generation === generation || (nonce.issuedAt >= since && nonce.issuedAt <= now + nonceLead);
}
