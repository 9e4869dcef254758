import type { Peers, PeerUse } from './limits.ts';

/** A connection with bytes that were read and not yet parsed. */
export interface Fed {
  /** Parses one piece. Returns true if another one may follow now. */
  feed(): boolean;
}

/** The limits that all connections of one listener share, and the queue in which they are parsed. */
export interface Intake {
  hasRoom(peer: PeerUse): boolean;
  /** Counts requests that begin to wait (1) or end (negative). */
  countRequests(peer: PeerUse, change: number): void;
  /** Counts bytes that are held. Returns false, and counts nothing, if they exceed the limit. */
  hold(peer: PeerUse, bytes: number): boolean;
  release(peer: PeerUse, bytes: number): void;
  /** Notes that a connection was accepted in this event-loop iteration. */
  noteArrival(): void;
  /** Feeds the connection when its turn comes. */
  enqueue(connection: Fed): void;
}

/** Requests that may wait in the process, in addition to one of each connection. */
const maxRequests = 4096;
/** Bytes that all connections together may have read and not parsed. */
const maxHeldBytes = 128 * 1024 * 1024;
/** Milliseconds of one event-loop iteration that feeding may take, so that other clients are served. */
const maxFeeding = 5;
/** Milliseconds while connections arrive: Node accepts one per iteration, and others wait in the backlog. */
const maxFeedingAtArrival = 0.5;

export function createIntake(peers: Peers): Intake {
  const requestsOfPeer = peers.partOf(maxRequests);
  const bytesOfPeer = peers.partOf(maxHeldBytes);
  const queue = new Set<Fed>();
  let requests = 0;
  let heldBytes = 0;
  let isWorking = false;
  let hasArrival = false;

  const work = (): void => {
    const end = performance.now() + (hasArrival ? maxFeedingAtArrival : maxFeeding);
    hasArrival = false;
    for (const connection of queue) {
      queue.delete(connection);
      // A set visits what is added during the visit, after all others.
      if (connection.feed()) queue.add(connection);
      if (performance.now() >= end) break;
    }
    isWorking = queue.size > 0;
    if (isWorking) setImmediate(work);
  };

  return {
    hasRoom: (peer) => requests < maxRequests && (!peer.isBounded || peer.requests < requestsOfPeer),
    countRequests(peer, change) {
      requests += change;
      peer.requests += change;
    },
    hold(peer, bytes) {
      if (heldBytes + bytes > maxHeldBytes || (peer.isBounded && peer.heldBytes + bytes > bytesOfPeer)) return false;
      heldBytes += bytes;
      peer.heldBytes += bytes;
      return true;
    },
    release(peer, bytes) {
      heldBytes -= bytes;
      peer.heldBytes -= bytes;
    },
    noteArrival() {
      hasArrival = true;
    },
    enqueue(connection) {
      queue.add(connection);
      if (!isWorking) setImmediate(work);
      isWorking = true;
    },
  };
}
