import type { Readiness } from '../app/admin.ts';
import type { MetricsSnapshot } from '../observation/metrics.ts';

/** What one worker knows of itself. */
export interface WorkerReport {
  readonly readiness: Readiness;
  readonly metrics: MetricsSnapshot;
}

/** What a worker tells the primary process. */
export type ToPrimary =
  | { readonly type: 'listening'; readonly url: string }
  | { readonly type: 'counted'; readonly metrics: MetricsSnapshot }
  | ({ readonly type: 'report'; readonly id: number } & WorkerReport)
  | {
      readonly type: 'witness';
      readonly id: number;
      readonly jkt: string;
      readonly jti: string;
      readonly until: number;
    };

/** What the primary process tells a worker. */
export type ToWorker =
  | { readonly type: 'report'; readonly id: number }
  | { readonly type: 'witnessed'; readonly id: number; readonly outcome: 'first' | 'seen' | 'full' | 'failed' }
  | { readonly type: 'shutdown' };
