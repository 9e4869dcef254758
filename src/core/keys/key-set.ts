import type { KeyObject } from 'node:crypto';
import { attempt } from '../attempt.ts';
import { checkOptionMembers } from '../option-members.ts';
import { createOutbound } from '../outbound/outbound.ts';
import { ProviderError, type ProviderFailure } from '../outbound/provider-error.ts';
import { pickByPlatform } from '../platform.ts';
import { fetchJwks } from './discovery.ts';
import type { DroppedKey, Jwks } from './jwks.ts';
import { openKeyCache } from './key-cache.ts';
import {
  createLocate,
  type KeySetEvent,
  type KeySetOptions,
  keySetMembers,
  nameInCache,
  warnOfOutage,
} from './key-set-options.ts';
import {
  clampLifetime,
  createBucket,
  dateKeys,
  describe,
  type FetchedKeys,
  fingerprint,
  type Loaded,
  restore,
  untilRefresh,
} from './loaded-keys.ts';
import { createRefresher, type RefresherState } from './refresher.ts';

/** The published keys of one issuer. Looking a key up is synchronous; only a fetch is awaited. */
export interface KeySet {
  /**
   * The key with this `kid`, usable for this `alg`; `undefined` when there is none, or nothing is usable now. Several keys may
   * share a `kid`: `nth`, from 0, is the index among those that fit.
   */
  find(kid: string, alg: string, nth?: number): KeyObject | undefined;
  /** Increases whenever the usable keys change: what was verified under an older one may have lost its key. */
  readonly generation: number;
  /** Reports whether a key with this `kid` is published, usable for some algorithm or not. */
  has(kid: string): boolean;
  /** Reports whether tokens can be verified now: a set is loaded, and fresh or still within the stale period. */
  usable(): boolean;
  /**
   * Fetches after a miss: an unknown `kid`, or nothing usable. Joins the fetch in flight; `undefined` if a new one is not
   * allowed now: three for unknown keys at once, one more every 10 s; after failures, the backoff. Never rejects: look up
   * again afterwards.
   */
  refetch(): Promise<void> | undefined;
}

/** Finds the key with this `kid` that fits this `alg` and has the index `nth` among them. */
export function findKey({ keys }: Pick<Jwks, 'keys'>, kid: string, alg: string, nth = 0): KeyObject | undefined {
  let skipped = 0;
  for (const { algs, key } of keys.get(kid) ?? []) if (algs.has(alg) && skipped++ === nth) return key;
  return undefined;
}

/** Keys with one `kid` that are tried at most. */
const maxTried = 4;

/** Finds the keys that a signature is tried with. */
export function findAll(keys: KeySet, kid: string, alg: string): readonly KeyObject[] {
  const found: KeyObject[] = [];
  for (let nth = 0; nth < maxTried; nth++) {
    const key = keys.find(kid, alg, nth);
    // A key set of the application may know of no `nth`.
    if (key === undefined || key === found[nth - 1]) break;
    found.push(key);
  }
  return found;
}

/** A key set that keeps itself up to date. */
export interface ManagedKeySet extends KeySet {
  /**
   * Resolves when tokens can be verified; fetches keys if they cannot. Rejects with the `ProviderError` of that fetch, or of
   * the last one if the backoff forbids another; a refreshing set continues to retry.
   */
  ready(): Promise<void>;
  /** Returns the state of keys and fetches. */
  status(): KeySetStatus;
  /** The last good set, for another process or a file; `undefined` before there is one. */
  fetched(): FetchedKeys | undefined;
  /** Ends a fetch in flight, the refreshing and every connection. Keys that are loaded can be found until they are stale. */
  close(): void;
}

/** State of a closed key set, from which another one for the same place continues. */
export interface KeySetState {
  /** Initial `generation`: greater than in every earlier key set of this location. */
  readonly generation: number;
  /** `undefined` if the place had no key set before, or its state was discarded. */
  readonly saved?: SavedKeySet | undefined;
}

/** Saved state of a key set; small, because the keys are one string. */
export interface SavedKeySet {
  /** The last good set: {@link FetchedKeys} as JSON; `undefined` before there is one. */
  readonly fetched: string | undefined;
  /** Time at which the state was taken, in seconds on the clock of the key set. */
  readonly at: number;
  readonly forcedAgainAt: number;
  readonly droppedBefore: string | undefined;
  readonly jwksUri: string | undefined;
  readonly refresher: RefresherState;
}

/** A key set whose state another one can continue from. */
export type ResumableKeySet = ManagedKeySet & { save(): SavedKeySet };

/** Status of a key set; safe to show to an operator. */
export interface KeySetStatus {
  /** True if tokens can be verified. */
  readonly usable: boolean;
  /** True until the next fetch is due. */
  readonly fresh: boolean;
  /** Seconds since the fetch that brought the keys; `undefined` before there are any. */
  readonly ageSeconds: number | undefined;
  /** Number of usable keys. */
  readonly keys: number;
  /** Cause of the last fetch's failure; `undefined` if it succeeded. */
  readonly lastError: { readonly kind: ProviderFailure; readonly message: string } | undefined;
  /** Seconds for which the keys can be used if nothing else is heard; 0 where they cannot. */
  readonly usableSeconds: number;
  /** Fetches so far. */
  readonly fetches: { readonly ok: number; readonly failed: number };
}

const attemptSeconds = 3;
const waiting = pickByPlatform({ workerd: 'state', others: 'promise' } as const);
const discoverySeconds = 2; // leaves time for the fallback
/** A failure longer ago says that the retries do not run: the process was suspended, or the runtime has no timers. */
const watchedSeconds = 60;

/** Makes the key set of an issuer; nothing is fetched before `ready()` or the first miss. A bad option: `TypeError`. */
export function createKeySet(options: KeySetOptions): ManagedKeySet {
  return resumeKeySet(options);
}

/** Like createKeySet, but continues from a state: freshness, retries and throttle are as if the earlier key set had stayed open. */
export function resumeKeySet(options: KeySetOptions, state?: KeySetState): ResumableKeySet {
  checkOptionMembers<KeySetOptions>('createKeySet', options, keySetMembers);
  const saved = state?.saved;
  const { mode = 'refreshing', staleSeconds = 3600, insecure = false } = options;
  const { now = () => performance.now() / 1000, random = Math.random, onEvent = warnOfOutage } = options;
  const outbound = createOutbound(options);
  let jwksUri = saved?.jwksUri;
  const discover = createLocate(options, outbound.fetchJson, jwksUri);
  const cache = options.keyCache && openKeyCache(options.keyCache, nameInCache(options));
  const refresher = createRefresher({
    attempt: load,
    onFailure: ({ error, attempt }, retryInSeconds) =>
      emit({ type: 'failed', error, attempt, retryInSeconds: mode === 'once' ? undefined : retryInSeconds }),
    // Keys from an earlier start are not good for ever: the first fetch that succeeds takes their place.
    timer: mode === 'once' && options.restored === undefined && cache === undefined ? 'off' : 'on',
    now,
    random,
    state: saved?.refresher,
    waiting,
    attemptSeconds,
  });
  let loaded = options.restored === undefined ? undefined : restore(options.restored, now());
  if (saved?.fetched !== undefined) loaded = restore(JSON.parse(saved.fetched) as FetchedKeys, saved.at); // its own JSON
  let generation = state?.generation ?? 0;
  let droppedBefore = saved?.droppedBefore;
  const bucket = createBucket(now, saved?.forcedAgainAt);
  if (insecure && saved === undefined) emit({ type: 'insecure' });

  async function load(): Promise<number> {
    const startedAt = now();
    const cached = loaded === undefined ? await cache?.read() : undefined;
    if (cached !== undefined) {
      loaded = dateKeys(cached.jwks, now() - cached.ageSeconds, clampLifetime(cached.maxAge));
      generation++;
      if (now() < loaded.freshUntil) return untilRefresh(loaded.lifetime, random()) - cached.ageSeconds;
    }
    const found = await discover(discoverySeconds);
    jwksUri = found.address;
    const timeoutSeconds = attemptSeconds - (now() - startedAt);
    const { jwks, maxAge } = await fetchJwks(found, outbound.fetchJson, { timeoutSeconds, onDropped: reportDropped });
    const lifetime = clampLifetime(maxAge);
    if (loaded === undefined || fingerprint(jwks) !== fingerprint(loaded)) generation++;
    const freshUntil = mode === 'once' ? Number.POSITIVE_INFINITY : startedAt + lifetime;
    loaded = { ...jwks, at: startedAt, lifetime, freshUntil };
    emit({ type: 'fetched', keys: jwks.entries.length, dropped: jwks.dropped.length, seconds: now() - startedAt });
    cache?.write(jwks.entries, now() - startedAt, maxAge);
    return mode === 'once' ? Number.POSITIVE_INFINITY : untilRefresh(lifetime, random());
  }

  function reportDropped(dropped: readonly DroppedKey[]): void {
    const all = JSON.stringify(dropped);
    if (all === droppedBefore) return;
    droppedBefore = all;
    for (const each of dropped) emit({ type: 'dropped', ...each });
  }

  function emit(event: KeySetEvent): void {
    attempt(onEvent, event);
  }

  function usableAt(time: number): boolean {
    return loaded !== undefined && (time < loaded.freshUntil || time < staleUntil(loaded));
  }

  /** End of stale-while-error (RFC 5861 §4): only an error that was seen allows old keys. */
  function staleUntil({ freshUntil }: Loaded): number {
    const { failure } = refresher.state();
    if (failure === undefined) return Number.NEGATIVE_INFINITY;
    return Math.min(freshUntil + staleSeconds, failure.at + watchedSeconds);
  }

  function refetch(): Promise<void> | undefined {
    if (mode === 'once' && loaded?.freshUntil === Number.POSITIVE_INFINITY) return undefined;
    return refresher.request(usableAt(now()) ? () => bucket.take() : isRetryDue);
  }

  function isRetryDue(): boolean {
    const { failure, lastAttemptAt } = refresher.state();
    return now() >= (failure?.retryAt ?? lastAttemptAt);
  }

  return {
    find: (kid, alg, nth) => (loaded !== undefined && usableAt(now()) ? findKey(loaded, kid, alg, nth) : undefined),
    has: (kid) => loaded?.published.has(kid) ?? false,
    usable: () => usableAt(now()),
    refetch,
    get generation() {
      return generation;
    },
    async ready() {
      if (usableAt(now())) return;
      await refetch();
      if (!usableAt(now())) throw refresher.state().failure?.error ?? new ProviderError('closed');
    },
    status() {
      const time = now();
      const error = refresher.state().failure?.error;
      return {
        usable: usableAt(time),
        fresh: loaded !== undefined && time < loaded.freshUntil,
        ageSeconds: loaded === undefined ? undefined : time - loaded.at,
        keys: loaded?.entries.length ?? 0,
        lastError: error === undefined ? undefined : { kind: error.kind, message: error.message },
        usableSeconds: loaded === undefined ? 0 : Math.max(0, loaded.freshUntil - time, staleUntil(loaded) - time),
        fetches: { ...refresher.attempts },
      };
    },
    fetched: () => loaded && describe(loaded, now()),
    save() {
      const at = now();
      const fetched = loaded && JSON.stringify(describe(loaded, at));
      return { fetched, at, forcedAgainAt: bucket.againAt, droppedBefore, jwksUri, refresher: refresher.state() };
    },
    close() {
      refresher.stop();
      outbound.close();
    },
  };
}
