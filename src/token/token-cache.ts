import { LRUCache } from 'lru-cache';
import { addEvidence, refuseBy } from '../check.ts';
import type { AccessError } from '../failures.ts';
import { sizeOfJson } from '../jose/json-size.ts';
import { checkOptionMembers } from '../option-members.ts';
import type { IssuerRules, VerifiedToken } from './access-token.ts';
import { type ClaimFacts, timeChecks } from './claims.ts';
import { createSeenFilter } from './seen-filter.ts';

/** How much a {@link TokenCache} holds. */
export interface TokenCacheOptions {
  /** Tokens at most. Default 10 000. */
  readonly maxEntries?: number;
  /** Bytes at most, as estimated from the shape of the claims. Default 64 MiB. */
  readonly maxBytes?: number;
}

/** What a cache holds, and how often it was asked. */
export interface TokenCacheStatus {
  readonly entries: number;
  readonly bytes: number;
  readonly hits: number;
  readonly misses: number;
}

/**
 * Tokens that were verified. Each is found by the end of its signature, and taken for the same only if all of its text is:
 * to hash the text would cost four times as much. The time of the comparison tells nobody anything who does not know the
 * end of the signature. Refused tokens are never kept, and one that never comes again is not: it would push out those
 * that do, and what lives that long is expensive for the garbage collector.
 */
export interface TokenCache {
  /**
   * What was verified, if it still holds: the rules that it was held against are among those of `issuers`, the key is
   * still published, and the clock agrees. The refusal of a token that is good but for the time.
   */
  find(token: string, issuers: ReadonlyMap<string, IssuerRules>, now: number): VerifiedToken | AccessError | undefined;
  /** Issuer of a token that is cached, whether it still holds or not. */
  issuerOf(token: string): string | undefined;
  /** Keeps a token that came before; notes one that has not. */
  remember(token: string, verified: VerifiedToken): void;
  status(): TokenCacheStatus;
}

interface Entry {
  /** The token as it was sent. */
  readonly text: string;
  readonly verified: VerifiedToken;
  /** Of the key set, when the key was last seen in it. */
  generation: number;
}

/** Characters at the end of a token: 132 bits of its signature. */
const tailLength = 22;
/** What an entry takes besides token and claims: what verified it, its place in the cache. */
const bytesPerEntry = 1024;
/** An entry of a set and its buckets, which double, and the text of one scope. */
const bytesPerScope = 88;

/** Creates an empty cache; tokens that are not used make room for others first. `TypeError` for a bound under 1. */
export function createTokenCache(options: TokenCacheOptions = {}): TokenCache {
  checkOptionMembers<TokenCacheOptions>('tokenCache', options, { maxEntries: true, maxBytes: true });
  const { maxEntries = 10_000, maxBytes = 64 * 1024 * 1024 } = options;
  if (!(maxEntries >= 1 && maxBytes >= 1)) throw new TypeError('tokenCache: write bounds of 1 or more, or off');
  const entries = new LRUCache<string, Entry>({ max: maxEntries, maxSize: maxBytes });
  const wasSeen = createSeenFilter();
  let hits = 0;
  let misses = 0;

  return {
    find(token, issuers, now) {
      const tail = token.slice(-tailLength);
      const entry = entries.get(tail);
      // Rules are compared as objects: the same issuer may stand in another list with others.
      if (entry === undefined || entry.text !== token || !isTrusted(entry, issuers)) {
        misses++;
        return undefined;
      }
      if (!isKeyPublished(entry)) {
        entries.delete(tail);
        misses++;
        return undefined;
      }
      const { verified } = entry;
      const { issuer } = verified.verifiedBy;
      const facts: ClaimFacts = { claims: verified.claims, rules: issuer, now };
      // A loop of its own: with three functions only, the runtime puts them in line.
      for (const check of timeChecks) {
        if (!check.passes(facts)) return addEvidence(refuseBy(check, facts), describe(verified));
      }
      hits++;
      return verified;
    },
    issuerOf(token) {
      const entry = entries.peek(token.slice(-tailLength));
      return entry?.text === token ? entry.verified.verifiedBy.issuer.issuer : undefined;
    },
    remember(token, verified) {
      const tail = token.slice(-tailLength);
      if (!wasSeen(tail)) return;
      const { generation } = verified.verifiedBy;
      entries.set(tail, { text: token, verified, generation }, { size: token.length + sizeOf(verified) });
    },
    status: () => ({ entries: entries.size, bytes: entries.calculatedSize, hits, misses }),
  };
}

function describe({ claims, verifiedBy: { kid } }: VerifiedToken) {
  return { claims, kid };
}

function sizeOf({ claims, scopes }: VerifiedToken): number {
  let size = bytesPerEntry + sizeOfJson(claims);
  for (const scope of scopes) size += bytesPerScope + scope.length;
  return size;
}

/** Whether the issuer is trusted in this list, by the rules that the token was held against. */
function isTrusted({ verified }: Entry, issuers: ReadonlyMap<string, IssuerRules>): boolean {
  const { issuer } = verified.verifiedBy;
  return issuers.get(issuer.issuer) === issuer;
}

/** Whether the key is still in the key set, and the key set fit to judge by. */
function isKeyPublished(entry: Entry): boolean {
  const { issuer, kid, alg, key } = entry.verified.verifiedBy;
  const { keys } = issuer;
  if (entry.generation === keys.generation) return keys.usable();
  const { generation } = keys;
  if (keys.find(kid, alg)?.equals(key) !== true) return false;
  entry.generation = generation;
  return true;
}
