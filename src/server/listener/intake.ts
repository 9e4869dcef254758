import type { IsTrusted } from '../../core/http/external-url.ts';
import { namePeer } from '../../core/http/peer-name.ts';

/** Part of one peer in the limits that all connections of a listener share. */
export interface PeerUse {
  /** False for a peer without a limit: a trusted proxy, or a unix socket. */
  readonly isBounded: boolean;
  connections: number;
  /** Bytes that were read and not yet parsed. */
  heldBytes: number;
}

export interface PeerOptions {
  /** Part of each limit that one peer may use, over 0 and at most 1. Default: 1. */
  readonly share?: number;
  /** Reports whether a peer is exempt. Default: only a peer without an address is. */
  readonly isTrusted?: IsTrusted;
}

/** A connection with bytes that were read and not yet parsed. */
export interface Fed {
  /** Parses one piece. Returns true if another one may follow now. */
  feed(): boolean;
}

/** The limits that all connections of one listener share, and the queues in which they are parsed and sent. */
export interface Intake {
  /** Counts a connection of the peer until {@link Intake.leave}. */
  enter(address: string | undefined): PeerUse;
  leave(address: string | undefined): void;
  find(address: string | undefined): PeerUse;
  /** Returns the part of a limit that the peer may use; at least 1. */
  partOf(limit: number, peer: PeerUse): number;
  /** Counts bytes that are held. Returns false, and counts nothing, if they exceed the limit. */
  hold(peer: PeerUse, bytes: number): boolean;
  release(peer: PeerUse, bytes: number): void;
  /** Notes that a connection was accepted in this event-loop iteration. */
  noteArrival(): void;
  /** Feeds the connection when its turn comes. */
  enqueue(connection: Fed): void;
  /** Sends at the end of the event-loop iteration. */
  sendLater(send: () => void): void;
}

/** Bytes that all connections together may have read and not parsed. */
const maxHeldBytes = 128 * 1024 * 1024;
/** Responses that wait for the end of the event-loop iteration. */
const maxUnsent = 32;
/** Milliseconds of one event-loop iteration that feeding may take, so that other clients are served. */
const maxFeeding = 5;
/** Milliseconds while connections arrive: Node accepts one per iteration, and others wait in the backlog. */
const maxFeedingAtArrival = 0.5;

export function createIntake({ share = 1, isTrusted = () => false }: PeerOptions = {}): Intake {
  const uses = new Map<string, PeerUse>();
  const queue = new Set<Fed>();
  let heldBytes = 0;
  let unsent: (() => void)[] = [];
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

  // To send a response wakes its reader. A reader on this host, such as a proxy, sleeps again before the next request is
  // authorized; of responses that are sent together, only the first wakes it.
  const sendAll = (): void => {
    const ready = unsent;
    unsent = [];
    for (const send of ready) send();
  };

  const exempt: PeerUse = { isBounded: false, connections: 0, heldBytes: 0 };
  const find = (address: string | undefined): PeerUse => {
    // Not by name: a proxy may be in the /64 of clients.
    if (address === undefined || isTrusted(address)) return exempt;
    return uses.get(namePeer(address)) ?? { isBounded: true, connections: 0, heldBytes: 0 };
  };
  const partOf = (limit: number, { isBounded }: PeerUse): number =>
    isBounded ? Math.max(1, Math.floor(limit * share)) : Number.POSITIVE_INFINITY;

  return {
    find,
    partOf,
    enter(address) {
      const use = find(address);
      if (use.isBounded) uses.set(namePeer(address), use);
      use.connections++;
      return use;
    },
    leave(address) {
      const use = find(address);
      if (--use.connections === 0 && use.isBounded) uses.delete(namePeer(address));
    },
    hold(peer, bytes) {
      if (heldBytes + bytes > maxHeldBytes || peer.heldBytes + bytes > partOf(maxHeldBytes, peer)) return false;
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
    sendLater(send) {
      if (unsent.length === 0) setImmediate(sendAll);
      if (unsent.push(send) === maxUnsent) sendAll();
    },
  };
}
