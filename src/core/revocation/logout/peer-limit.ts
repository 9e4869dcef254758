/** Invalid messages of a peer within the window, in seconds, after which it is blocked for as long. */
const most = 20;
const window = 10;
const maxPeers = 10_000;

/** Creates the limit of one process. A peer without an address is not limited: all senders behind a unix socket would be one. */
export function createPeerLimit() {
  const now = (): number => performance.now() / 1000;
  const counts = new Map<string, { invalid: number; until: number }>();
  const find = (peer: string) => {
    const count = counts.get(peer);
    return count !== undefined && now() < count.until ? count : undefined;
  };
  return {
    /** Seconds for which a peer is refused; 0 if it is not. */
    blockedFor(peer: string): number {
      const count = find(peer);
      return count === undefined || count.invalid < most ? 0 : Math.ceil(count.until - now());
    },
    note(peer: string): void {
      if (peer === '') return;
      const count = find(peer) ?? { invalid: 0, until: now() + window };
      count.invalid++;
      if (count.invalid === most) count.until = now() + window;
      // To the end: the peer that sent nothing for the longest time is first.
      counts.delete(peer);
      counts.set(peer, count);
      const [oldest] = counts.keys();
      if (counts.size > maxPeers && oldest !== undefined) counts.delete(oldest);
    },
  };
}
