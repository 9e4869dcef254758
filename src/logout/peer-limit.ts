import { LRUCache } from 'lru-cache';

export interface PeerLimit {
  /** Seconds for which a peer is refused; 0 if it is not. */
  blockedFor(peer: string): number;
  note(peer: string): void;
}

/** Invalid messages of a peer within the window, after which it is blocked for as long. */
const most = 20;
const windowMilliseconds = 10_000;
const maxPeers = 10_000;

/** Creates the limit of one process. A peer without an address is not limited: all senders behind a unix socket would be one. */
export function createPeerLimit(): PeerLimit {
  const counts = new LRUCache<string, number>({ max: maxPeers, ttl: windowMilliseconds });
  return {
    blockedFor: (peer) =>
      (counts.get(peer) ?? 0) < most ? 0 : Math.max(0, Math.ceil(counts.getRemainingTTL(peer) / 1000)),
    note(peer) {
      if (peer === '') return;
      const count = (counts.get(peer) ?? 0) + 1;
      // The window begins with the first message, and the block with the last one.
      counts.set(peer, count, { noUpdateTTL: count !== most });
    },
  };
}
