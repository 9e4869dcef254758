import { thumbprint, type VerificationKey } from '../jose/jwk.ts';
import { type Jwks, readJwks } from './jwks.ts';

/** A key set that was fetched, as plain data. Public keys only. */
export interface FetchedKeys {
  /** The usable keys, in published form. */
  readonly keys: readonly object[];
  /** Every `kid` that was published. */
  readonly published: readonly string[];
  /** Seconds since the fetch. */
  readonly ageSeconds: number;
  /** Seconds from the fetch for which the set is fresh. */
  readonly lifetimeSeconds: number;
}

const freshSeconds = { least: 60, usual: 600, most: 3600 } as const;
/** Shares of the freshness, left to chance between the two: instances that started together do not stay together. */
const refreshAhead = { earliest: 0.7, latest: 0.8 } as const;
/** Fetches for unknown keys: so many at once, and one more each so many seconds. */
const forced = { atOnce: 3, everySeconds: 10 } as const;

export interface Loaded extends Jwks {
  readonly at: number;
  readonly lifetime: number;
  readonly freshUntil: number;
}

export function clampLifetime(maxAge: number = freshSeconds.usual): number {
  return Math.min(freshSeconds.most, Math.max(freshSeconds.least, maxAge));
}

export function untilRefresh(lifetime: number, chance: number): number {
  const { earliest, latest } = refreshAhead;
  return lifetime * (latest - (latest - earliest) * (1 - chance));
}

/** A rotation straight after a fetch is found, and a flood of unknown keys costs the provider little. */
export function createBucket(now: () => number, againAt = Number.NEGATIVE_INFINITY) {
  return {
    /** Time when all fetches for unknown keys are allowed again, in seconds. */
    againAt,
    take(): boolean {
      const time = now();
      const from = Math.max(this.againAt, time);
      if (from - time > (forced.atOnce - 1) * forced.everySeconds) return false;
      this.againAt = from + forced.everySeconds;
      return true;
    },
  };
}

export function describe({ entries, published, at, lifetime }: Omit<Loaded, 'freshUntil'>, now: number): FetchedKeys {
  return { keys: entries, published: [...published], ageSeconds: now - at, lifetimeSeconds: lifetime };
}

export function dateKeys(jwks: Jwks, at: number, lifetime: number): Loaded {
  return { ...jwks, at, lifetime, freshUntil: at + lifetime };
}

export function restore({ keys, published, ageSeconds, lifetimeSeconds }: FetchedKeys, now: number): Loaded {
  return dateKeys({ ...readJwks({ keys }), published: new Set(published) }, now - ageSeconds, lifetimeSeconds);
}

/** Equal for key sets that verify the same tokens. */
export function fingerprint({ keys }: Jwks): string {
  const ofKid = (all: readonly VerificationKey[]) => all.map(({ jwk, algs }) => [thumbprint(jwk), ...algs]);
  return JSON.stringify([...keys].map(([kid, all]) => [kid, ...ofKid(all)]));
}
