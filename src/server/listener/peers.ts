import { namePeer } from '../../http/peer-name.ts';
import type { IsTrusted } from '../../http/trust.ts';

/** What one peer uses of the limits that all peers share. */
export interface PeerUse {
  /** False for a peer without a part of its own: a trusted proxy, or a unix socket. */
  readonly isBounded: boolean;
  connections: number;
  /** Requests that wait for their responses. */
  requests: number;
  /** Bytes that were read and not yet parsed. */
  heldBytes: number;
}

/** The use that peers make of one listener, and the part of each limit that one peer may take. */
export interface Peers {
  /** Counts a connection of the peer until {@link Peers.leave}. */
  enter(address: string | undefined): PeerUse;
  leave(address: string | undefined): void;
  /** Returns the use of a peer that has a connection. */
  find(address: string | undefined): PeerUse;
  /** Returns the part of a limit that a bounded peer may take; at least 1. */
  partOf(limit: number): number;
}

/** Options of {@link createPeers}. */
export interface PeersOptions {
  /** Part of each limit, over 0 and at most 1. Default: 1. */
  readonly share?: number;
  /** Reports whether a peer is exempt. Default: only a peer without an address is. */
  readonly isTrusted?: IsTrusted;
}

/** Creates the count of what peers use. */
export function createPeers({ share = 1, isTrusted = () => false }: PeersOptions = {}): Peers {
  const uses = new Map<string, PeerUse>();
  const find = (address: string | undefined): PeerUse =>
    uses.get(namePeer(address)) ?? {
      isBounded: address !== undefined && !isTrusted(address),
      ...{ connections: 0, requests: 0, heldBytes: 0 },
    };
  return {
    find,
    enter(address) {
      const use = find(address);
      uses.set(namePeer(address), use);
      use.connections++;
      return use;
    },
    leave(address) {
      const name = namePeer(address);
      const use = uses.get(name);
      if (use !== undefined && --use.connections === 0) uses.delete(name);
    },
    partOf: (limit) => Math.max(1, Math.floor(limit * share)),
  };
}
