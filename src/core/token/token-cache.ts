import { LRUCache } from 'lru-cache';
import { refuseBy } from '../checks.ts';
import { findAll } from '../keys/key-set.ts';
import { checkOptionMembers } from '../option-members.ts';
import type { Refused } from '../refused.ts';
import type { IssuerRules, VerifiedToken } from './access-token.ts';
import { type ClaimFacts, timeChecks } from './claims.ts';

/** Limits of a {@link TokenCache}. */
export interface TokenCacheOptions {
  /** Tokens at most. Default 10 000. */
  readonly maxEntries?: number;
  /** Bytes at most, as estimated from the length of the tokens. Default 64 MiB. */
  readonly maxBytes?: number;
}

/** Size of a cache, and the number of its look-ups. */
export interface TokenCacheStatus {
  /** Number of cached tokens. */
  readonly entries: number;
  /** Estimated size. */
  readonly bytes: number;
  /** Look-ups that found a token. */
  readonly hits: number;
  /** Look-ups that found none. */
  readonly misses: number;
}

export type TokenCache = ReturnType<typeof createTokenCache>;

interface Entry {
  readonly text: string;
  readonly verified: VerifiedToken;
  generation: number;
}

/** Characters at the end of a token: 132 bits of its signature. */
const tailLength = 22;
/** Bytes of an entry in addition to its token and claims. */
const bytesPerEntry = 1024;
/** Bytes of a token and its parsed claims, for each character of the token. */
const bytesPerCharacter = 4;

/**
 * Creates an empty LRU cache of verified tokens. Each is found by the end of its signature, and then compared completely: a
 * hash would cost four times as much, and the time of the comparison reveals nothing without that end. Refused tokens are never
 * cached. Tokens used once are not either: they would evict others, and cost the garbage collector time.
 */
export function createTokenCache(options: TokenCacheOptions = {}) {
  checkOptionMembers<TokenCacheOptions>('tokenCache', options, { maxEntries: true, maxBytes: true });
  const { maxEntries = 10_000, maxBytes = 64 * 1024 * 1024 } = options;
  if (!(maxEntries >= 1 && maxBytes >= 1)) throw new TypeError('tokenCache: write bounds of 1 or more, or off');
  // Without `max`, which would reserve the memory of all entries at once.
  const entries = new LRUCache<string, Entry>({ maxSize: maxBytes });
  const wasSeen = createSeenFilter();
  let hits = 0;
  let misses = 0;

  return {
    /** Returns a token whose rules and key still hold, or its refusal if it fails only by time. */
    find(token: string, issuers: ReadonlyMap<string, IssuerRules>, now: number): VerifiedToken | Refused | undefined {
      const tail = token.slice(-tailLength);
      const entry = entries.get(tail);
      // Rules are compared as objects: the same issuer may have other rules in another list.
      if (entry === undefined || entry.text !== token || !isTrusted(entry, issuers)) {
        misses++;
        return undefined;
      }
      if (!isKeyPublished(entry)) {
        entries.delete(tail);
        misses++;
        return undefined;
      }
      const { claims, scopes, verifiedBy } = entry.verified;
      const facts: ClaimFacts = { claims, rules: verifiedBy.issuer, now };
      // A separate loop: with only three functions, the runtime inlines them.
      for (const check of timeChecks) {
        if (!check.passes(facts)) return refuseBy(check, facts).attest({ claims, kid: verifiedBy.kid, scopes });
      }
      hits++;
      return entry.verified;
    },
    issuerOf(token: string): string | undefined {
      const entry = entries.peek(token.slice(-tailLength));
      return entry?.text === token ? entry.verified.verifiedBy.issuer.issuer : undefined;
    },
    /** Keeps a token that came before; notes one that has not. */
    remember(token: string, verified: VerifiedToken): void {
      const tail = token.slice(-tailLength);
      if (!wasSeen(tail)) return;
      const { generation } = verified.verifiedBy;
      const size = bytesPerEntry + token.length * bytesPerCharacter;
      entries.set(tail, { text: token, verified, generation }, { size });
      if (entries.size > maxEntries) entries.pop();
    },
    status: (): TokenCacheStatus => ({ entries: entries.size, bytes: entries.calculatedSize, hits, misses }),
  };
}

function isTrusted({ verified }: Entry, issuers: ReadonlyMap<string, IssuerRules>): boolean {
  const { issuer } = verified.verifiedBy;
  return issuers.get(issuer.issuer) === issuer;
}

/** Reports whether the key is still in the key set, and the key set is usable. */
function isKeyPublished(entry: Entry): boolean {
  const { issuer, kid, alg, key } = entry.verified.verifiedBy;
  const { keys } = issuer;
  if (entry.generation === keys.generation) return keys.usable();
  const { generation } = keys;
  if (!findAll(keys, kid, alg).some((each) => each.equals(key))) return false;
  entry.generation = generation;
  return true;
}

/** A power of two; four bytes each. */
const slots = 65_536;
/** 48 bits of the signature. */
const characters = 8;

/** Creates the filter of signatures seen before, in 256 KiB: old ones are evicted, one in 65 536 is mistaken. */
export function createSeenFilter(): (tail: string) => boolean {
  const marks = new Int32Array(slots);
  return (tail) => {
    let mark = 0;
    for (let i = 0; i < characters; i++) mark = (Math.imul(mark, 31) + tail.charCodeAt(i)) | 0;
    const slot = mark & (slots - 1);
    if (marks[slot] === mark) return true;
    marks[slot] = mark;
    return false;
  };
}
