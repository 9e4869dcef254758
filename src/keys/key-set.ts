import type { KeyObject } from 'node:crypto';

/** The published keys of one issuer. Looking a key up is synchronous; only a fetch is waited for. */
export interface KeySet {
  /** The key with this `kid`, usable for this `alg`; `undefined` when there is none, or nothing is usable now. */
  find(kid: string, alg: string): KeyObject | undefined;
  /** Whether a key with this `kid` is published, usable for some algorithm or not. */
  has(kid: string): boolean;
  /** Whether tokens can be judged now: a set is loaded, and fresh or still within the stale period. */
  usable(): boolean;
  /**
   * Fetches after a miss: an unknown `kid`, or nothing usable. Joins the fetch in flight; `undefined` where the
   * throttle or the backoff forbids a new one. Never rejects: look up again afterwards.
   */
  refetch(): Promise<void> | undefined;
}
