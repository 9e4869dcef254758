import { limitTime } from '../attempt.ts';
import { isJsonObject, isTime } from '../jose/json.ts';
import { readJwks } from './jwks.ts';

/** Fetched keys, as a cache stores them: public keys, and their age. */
export interface CachedKeys {
  /** Usable keys, in published form. */
  readonly keys: readonly object[];
  /** Time of the fetch, in seconds since the epoch. */
  readonly fetchedAt: number;
  /** `max-age` of the response, in seconds. Absent if the response has none. */
  readonly maxAge?: number | undefined;
}

/**
 * Storage for fetched keys outside of this process, such as Workers KV, a file or Redis. Anyone who can write to it can sign
 * tokens.
 */
export interface KeyCache {
  /** Returns what `write` stored for a URL. An error, another value, or no result within 250 ms counts as nothing. */
  read(url: string): unknown;
  /** Stores the keys of a URL: the URL of the metadata, or `jwksUri`. No request waits for its end; an error is ignored. */
  write(url: string, keys: CachedKeys): unknown;
}

const readSeconds = 0.25;
/** Workers end what outlives a request: a write that began in one may never end. */
const writeSeconds = 10;

/** Opens the entry of a URL. `now` returns seconds since the epoch. */
export function openKeyCache(cache: KeyCache, url: string, now: () => number = () => Date.now() / 1000) {
  let next: CachedKeys | undefined;
  let startedAt = -Infinity;

  const readStored = async () => check(await cache.read(url), now());

  /** Writes one set after the other, and none over a later one of another process. */
  const writeAll = async (): Promise<void> => {
    startedAt = now();
    while (next !== undefined) {
      const keys = next;
      next = undefined;
      const stored = await readStored().catch(() => undefined);
      if (stored !== undefined && stored.fetchedAt > keys.fetchedAt) continue;
      await (async () => cache.write(url, keys))().catch(() => undefined);
    }
    startedAt = -Infinity;
  };

  return {
    /** Returns the stored keys with their age in seconds. */
    async read() {
      const nothing = (): undefined => undefined;
      const stored = await limitTime(readStored().catch(nothing), readSeconds, nothing);
      return stored && { ...stored, ageSeconds: now() - stored.fetchedAt };
    },
    write(keys: readonly object[], ageSeconds: number, maxAge: number | undefined): void {
      next = { keys, fetchedAt: Math.floor(now() - ageSeconds), ...(maxAge !== undefined && { maxAge }) };
      if (Math.abs(now() - startedAt) >= writeSeconds) void writeAll();
    },
  };
}

/** Checks stored keys as fetched ones are checked. No fetch has a date in the future. */
function check(value: unknown, now: number) {
  if (!isJsonObject(value)) return undefined;
  const { fetchedAt, maxAge } = value;
  if (!isTime(fetchedAt) || fetchedAt > now) return undefined;
  const jwks = readJwks(value);
  return jwks.entries.length === 0 ? undefined : { jwks, fetchedAt, maxAge: isTime(maxAge) ? maxAge : undefined };
}
