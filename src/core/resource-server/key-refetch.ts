import { LRUCache } from 'lru-cache';
import type { ReadClientAddress } from '../http/external-url.ts';
import { namePeer } from '../http/peer-name.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import type { KeySet } from '../keys/key-set.ts';
import { pickByPlatform } from '../platform.ts';
import { Refused } from '../refused.ts';
import { type AccessTokenRules, missingKeys } from '../token/access-token.ts';

export interface Sender {
  readonly request: ResourceRequest;
  readonly connection: Connection | undefined;
}

/** Seconds between fetches of one client for unknown keys: a key set allows three at once, and others need them too. */
const forcedEvery = 10;
const maxClients = 1000;
const joinsFetches = pickByPlatform({ workerd: false, others: true });

/** Fetches the keys that a refused token lacked; `undefined` for another cause, or if no fetch is allowed now. */
export function createRefetchKeys(readClientAddress: ReadClientAddress, now: () => number) {
  const inFlight = new WeakMap<KeySet, Promise<void>>();
  const forcedAt = new LRUCache<string, number>({ maxSize: maxClients, sizeCalculation: () => 1 });
  return (
    { reason, context }: Refused,
    { issuers }: AccessTokenRules,
    { request, connection }: Sender,
  ): Promise<void> | undefined => {
    const issuer = missingKeys.has(reason) ? context?.['issuer'] : undefined;
    const keys = typeof issuer === 'string' ? issuers.get(issuer)?.keys : undefined;
    if (keys === undefined) return undefined;
    // There a fetch of another request may never end, so each request watches over it (RefresherOptions.waiting).
    if (!joinsFetches) return keys.refetch();
    const joined = inFlight.get(keys);
    if (joined !== undefined) return joined;
    const client = reason === 'keys_unavailable' ? '' : namePeer(readClientAddress(request, connection));
    const seconds = now();
    // A clock that is set back must not prolong the wait.
    const isLimited = Math.abs(seconds - (forcedAt.get(client) ?? Number.NEGATIVE_INFINITY)) < forcedEvery;
    if (client !== '' && isLimited) return undefined;
    const fetched = keys.refetch();
    if (fetched === undefined) return undefined;
    if (client !== '') forcedAt.set(client, seconds);
    inFlight.set(keys, fetched);
    void fetched.then(() => inFlight.delete(keys));
    return fetched;
  };
}

/** Verifies again after a fetch of the keys. The first may have read a cache, which lacks the token's key. */
export function createVerifyAgain(refetch: ReturnType<typeof createRefetchKeys>, source: 'provider' | 'cache') {
  return <T>(refused: Refused, trusted: AccessTokenRules, sender: Sender & { readonly verify: () => T | Refused }) =>
    refetch(refused, trusted, sender)?.then(() => {
      const again = sender.verify();
      const isOld = source === 'cache' && refused.reason === 'keys_unavailable' && again instanceof Refused;
      return (isOld ? refetch(again, trusted, sender)?.then(sender.verify) : undefined) ?? again;
    });
}
