import type { IsTrusted } from '../../http/external-url.ts';
import { namePeer } from '../../http/peer-name.ts';
import type { Log } from '../observation/log.ts';
import type { Metrics } from '../observation/metrics.ts';
import { readDescriptorLimit } from '../observation/process-metrics.ts';

export interface PeerUse {
  /** False for a peer without a limit: a trusted proxy, or a unix socket. */
  readonly isBounded: boolean;
  connections: number;
  requests: number;
  /** Bytes that were read and not yet parsed. */
  heldBytes: number;
}

export interface Peers {
  /** Counts a connection of the peer until {@link Peers.leave}. */
  enter(address: string | undefined): PeerUse;
  leave(address: string | undefined): void;
  find(address: string | undefined): PeerUse;
  /** Returns the part of a limit that a bounded peer may use; at least 1. */
  partOf(limit: number): number;
}

export interface PeersOptions {
  /** Part of each limit, over 0 and at most 1. Default: 1. */
  readonly share?: number;
  /** Reports whether a peer is exempt. Default: only a peer without an address is. */
  readonly isTrusted?: IsTrusted;
}

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

export interface ConnectionLimit {
  /** `undefined` on systems without /proc. */
  readonly most: number | undefined;
  /** Counts a connection that was closed because there are too many. */
  note(): void;
}

/** Descriptors for other files than connections: log, Redis, the provider, the channel to another process. */
const reserve = 64;
/** Milliseconds between two log lines. */
const quietTime = 10_000;

/** Without free descriptors the system closes new connections silently. The service closes them before, and logs it. */
export function createConnectionLimit(log: Log, metrics: Metrics): ConnectionLimit {
  const limit = readDescriptorLimit();
  const most = limit === undefined ? undefined : Math.max(1, limit - reserve);
  const refused = metrics.counter(
    'portcullis_connections_refused_total',
    'Connections that were closed because the limit on open files was reached.',
  );
  refused.series('');
  let unreported = 0;
  let quietUntil = 0;
  return {
    most,
    note() {
      refused.series('').value++;
      unreported++;
      if (performance.now() < quietUntil) return;
      quietUntil = performance.now() + quietTime;
      const fix = 'Raise the limit on open files (ulimit -n, LimitNOFILE), or run more instances.';
      log.write('error', 'connections_refused', { connections: unreported, most, fix });
      unreported = 0;
    },
  };
}
