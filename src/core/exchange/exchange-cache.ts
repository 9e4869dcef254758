import { LRUCache } from 'lru-cache';
import type { Refused } from '../refused.ts';

/** A token for another API, in exchange for the caller's. */
export interface ExchangedToken {
  /** The access token, for `Authorization: Bearer`. */
  readonly token: string;
  /** Its end, in seconds since the epoch. */
  readonly expiresAt: number;
}

/** The complete token of a caller, and the prefix of the keys of its target. */
export interface ExchangeKey {
  readonly target: string;
  readonly subject: string;
}

export interface CachedExchange {
  /** `undefined` once it was discarded. */
  readonly result: ExchangedToken | Refused | undefined;
  /** Seconds since the epoch. */
  readonly until: number;
  /** End on a clock that never steps back, in seconds. */
  readonly steadyUntil: number;
  /** Time at which an upstream last refused its token, in seconds since the epoch. */
  readonly discardedAt: number;
  /** Called once, when it leaves the cache. */
  readonly release?: (() => void) | undefined;
}

/** Reports whether a token is cached, and neither a refusal nor nothing. */
export function isToken(result: CachedExchange['result']): result is ExchangedToken {
  return result !== undefined && 'token' in result;
}

type Owner = { readonly keys: Set<string>; bytes: number };

export interface ExchangeEntry extends CachedExchange {
  isCached: boolean;
  readonly subject: string;
  readonly caller: string;
  readonly owner: Owner;
  readonly size: number;
}

export type ExchangeCache = ReturnType<typeof createExchangeCache>;

/** Bytes of an entry in addition to the two tokens. */
const bytesPerEntry = 1024;
/** Characters at the end of a token that an entry is found by: of its signature, if it is a JWT. */
const tailLength = 43;
/** Callers whose parts fill the cache. */
const partsPerCache = 16;

/**
 * Creates an empty cache. Exchanges share it, each under a prefix of keys. A caller has a part of it: its next entry evicts its
 * own oldest ones. An entry is found by the end of the caller's token, and then compared completely: a hash of the complete
 * token would cost more than the rest of a decision.
 */
export function createExchangeCache(maxBytes = 32 * 1024 * 1024) {
  const part = maxBytes / partsPerCache;
  const owners = new Map<string, Owner>();
  const entries = new LRUCache<string, ExchangeEntry>({
    maxSize: maxBytes,
    dispose(entry, key) {
      const { caller, owner, size, release } = entry;
      entry.isCached = false;
      release?.();
      owner.bytes -= size;
      owner.keys.delete(key);
      if (owner.keys.size === 0) owners.delete(caller);
    },
  });
  let opened = 0;

  return {
    /** Returns a prefix of keys that no other exchange has. */
    open: (): string => `${opened++} `,
    close(prefix: string): void {
      for (const key of [...entries.keys()]) if (key.startsWith(prefix)) entries.delete(key);
    },
    get({ target, subject }: ExchangeKey): ExchangeEntry | undefined {
      const entry = entries.get(target + subject.slice(-tailLength));
      return entry?.subject === subject ? entry : undefined;
    },
    set({ target, subject }: ExchangeKey, caller: string, cached: CachedExchange): void {
      const key = target + subject.slice(-tailLength);
      const { result } = cached;
      const size = bytesPerEntry + key.length + subject.length + (isToken(result) ? result.token.length : 0);
      entries.delete(key);
      if (size > part) return void cached.release?.();
      const owner = owners.get(caller) ?? { keys: new Set(), bytes: 0 };
      for (const oldest of owner.keys) {
        if (owner.bytes + size <= part) break;
        entries.delete(oldest);
      }
      entries.set(key, { ...cached, subject, caller, owner, size, isCached: true }, { size });
      owner.keys.add(key);
      owner.bytes += size;
      owners.set(caller, owner);
    },
    /** Deletes an entry, unless another token has replaced it. */
    delete({ target, subject }: ExchangeKey): void {
      const key = target + subject.slice(-tailLength);
      if (entries.peek(key)?.subject === subject) entries.delete(key);
    },
    status: () => ({ entries: entries.size, bytes: entries.calculatedSize }),
  };
}
