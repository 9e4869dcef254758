import type { Horizon } from '../../dpop/horizon.ts';
import type { Readiness } from '../admin/admin.ts';
import type { DecisionBatch } from '../console/wire.ts';
import type { KeyNews, KeyPlace } from '../keys/service-keys.ts';
import type { MetricsSnapshot } from '../observation/metrics.ts';

/** What one worker knows of itself. */
export interface WorkerReport {
  readonly readiness: Readiness;
  readonly metrics: MetricsSnapshot;
}

/** A proof that was verified, for the replay memory. */
export interface WitnessedProof {
  readonly jkt: string;
  readonly jti: string;
  /** Seconds since the epoch, inclusive. */
  readonly until: number;
}

/** What the replay memory of the primary process says of a proof. */
export type WitnessOutcome = 'first' | 'seen' | 'full' | 'late';

/** What all workers of one service must know of the replay memory that they share. */
export interface SharedReplay extends Horizon {
  /** For nonces that are asked for after a start. */
  readonly nonceSecret: string;
}

/** What a worker tells the primary process. */
export type ToPrimary =
  /** Can take connections. */
  | { readonly type: 'ready' }
  /** Was told to end by somebody else. */
  | { readonly type: 'leaving' }
  | { readonly type: 'taken'; readonly id: number }
  | { readonly type: 'alive' }
  /** What it has counted until now; outlives it. */
  | { readonly type: 'counted'; readonly metrics: MetricsSnapshot }
  /** `fetches` that the worker has heard of: it is given newer keys before any are fetched. */
  | {
      readonly type: 'keys';
      readonly id: number;
      readonly issuer: string;
      readonly place: KeyPlace;
      readonly wish: 'follow' | 'fetch';
      readonly fetches: number;
    }
  | ({ readonly type: 'report'; readonly id: number } & WorkerReport)
  /** The proofs of one turn of the event loop. */
  | { readonly type: 'witness'; readonly id: number; readonly proofs: readonly WitnessedProof[] }
  | { readonly type: 'share_replay' }
  /** For the console. */
  | { readonly type: 'decisions'; readonly batch: DecisionBatch };

/** What the primary process tells a worker. */
export type ToWorker =
  | { readonly type: 'report'; readonly id: number }
  /** In the order in which the proofs were sent. */
  | { readonly type: 'witnessed'; readonly id: number; readonly outcomes: readonly WitnessOutcome[] }
  | ({ readonly type: 'replay_shared' } & SharedReplay)
  /** `id` of the question that this answers; without one it was not asked for. `throttled`: nothing is fetched now. */
  | {
      readonly type: 'keys';
      /** Of the issuer and its place. */
      readonly name: string;
      readonly id?: number;
      readonly news: KeyNews | undefined;
      readonly throttled: boolean;
    }
  /** Comes with a connection. */
  | { readonly type: 'connection'; readonly id: number }
  | { readonly type: 'alive' }
  | { readonly type: 'reload' }
  /** Not ready from now on; connections still come. */
  | { readonly type: 'drain' }
  /** No more connections come. */
  | { readonly type: 'shutdown' };
