/** One use of a limit that all peers share. */
export interface Place {
  /** Peer as named by `namePeer`; a peer without an address has no part. */
  readonly peer: string;
  /** Ends this use: a newer one takes its place. */
  readonly end: () => void;
}

/** Creates places for uses that end soon, unless a peer holds them. `share`: the part of one peer, over 0 and at most 1. */
export function createPlaces(most: number, share: number) {
  const all = new Set<Place>();
  const ofPeers = new Map<string, Set<Place>>();
  const leave = (place: Place): void => {
    all.delete(place);
    const own = ofPeers.get(place.peer);
    own?.delete(place);
    if (own?.size === 0) ofPeers.delete(place.peer);
  };
  const end = ([oldest]: Iterable<Place>): void => {
    if (oldest === undefined) return;
    leave(oldest);
    oldest.end();
  };
  return {
    leave,
    /** Takes a place. If none is free, the oldest use ends: of this peer if its part is full, otherwise of all peers. */
    take(place: Place): void {
      const { peer } = place;
      const own = ofPeers.get(peer);
      if (peer !== '' && own !== undefined && own.size >= Math.max(1, most * share)) end(own);
      else if (all.size >= most) end(all);
      all.add(place);
      ofPeers.set(peer, (ofPeers.get(peer) ?? new Set()).add(place));
    },
  };
}
