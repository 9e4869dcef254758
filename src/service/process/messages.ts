import type { Horizon } from '../../dpop/horizon.ts';
import type { Readiness } from '../app/admin.ts';
import type { MetricsSnapshot } from '../observation/metrics.ts';

/** What one worker knows of itself. */
export interface WorkerReport {
  readonly readiness: Readiness;
  readonly metrics: MetricsSnapshot;
}

/** What the replay memory of the primary process says of a proof. */
export type WitnessOutcome = 'first' | 'seen' | 'full' | 'late' | 'failed';

/** What all workers of one service must know of the replay memory that they share. */
export interface SharedReplay extends Horizon {
  /** For nonces that are asked for after a start. */
  readonly nonceSecret: string;
}

/** What a worker tells the primary process. */
export type ToPrimary =
  | { readonly type: 'listening'; readonly url: string }
  | ({ readonly type: 'report'; readonly id: number } & WorkerReport)
  | {
      readonly type: 'witness';
      readonly id: number;
      readonly jkt: string;
      readonly jti: string;
      readonly until: number;
    }
  | { readonly type: 'share_replay' };

/** What the primary process tells a worker. */
export type ToWorker =
  | { readonly type: 'report'; readonly id: number }
  | { readonly type: 'witnessed'; readonly id: number; readonly outcome: WitnessOutcome }
  | ({ readonly type: 'replay_shared' } & SharedReplay)
  | { readonly type: 'shutdown' };
