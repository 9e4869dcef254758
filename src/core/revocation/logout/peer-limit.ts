import { LRUCache } from 'lru-cache';

/** Invalid messages of a peer within the window, in seconds, after which it is blocked for as long. */
const most = 20;
const window = 10;
const maxPeers = 10_000;

/** Creates the limit of one process. A peer without an address is not limited: all senders behind a unix socket would be one. */
export function createPeerLimit() {
  // On Workers, a timer for the time of the cache would end with its request.
  const counts = new LRUCache<string, number>({ max: maxPeers, ttl: window * 1000, ttlResolution: 0 });
  const count = (peer: string): number => counts.get(peer) ?? 0;
  return {
    /** Seconds for which a peer is refused; 0 if it is not. */
    blockedFor: (peer: string): number => (count(peer) < most ? 0 : Math.ceil(counts.getRemainingTTL(peer) / 1000)),
    note(peer: string): void {
      const invalid = count(peer) + 1;
      // Only the first message and the one that blocks begin a window.
      if (peer !== '') counts.set(peer, invalid, { noUpdateTTL: invalid !== most });
    },
  };
}
