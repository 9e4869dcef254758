import type { Horizon } from '../../dpop/replay.ts';
import type { EventResponse } from '../../http/event-post.ts';
import type { RevocationRecord } from '../../revocation/record.ts';
import type { Readiness } from '../admin/admin.ts';
import type { DecisionBatch } from '../console/wire.ts';
import type { KeyNews, KeyPlace } from '../keys/service-keys.ts';
import type { MetricsSnapshot } from '../observation/metrics.ts';

export interface WorkerReport {
  readonly readiness: Readiness;
  readonly metrics: MetricsSnapshot;
}

export interface WitnessedProof {
  readonly jkt: string;
  readonly jti: string;
  /** Seconds since the epoch, inclusive. */
  readonly until: number;
}

export type WitnessOutcome = 'first' | 'seen' | 'full' | 'late';

/** Facts of the shared replay memory that every worker needs. */
export interface SharedReplay extends Horizon {
  /** For nonces that are required after a start. */
  readonly nonceSecret: string;
}

export type ToPrimary =
  /** Can take connections. */
  | { readonly type: 'ready' }
  /** Has received a signal to end. */
  | { readonly type: 'leaving' }
  | { readonly type: 'taken'; readonly id: number }
  | { readonly type: 'alive' }
  | { readonly type: 'counted'; readonly metrics: MetricsSnapshot }
  /** `fetches`: those whose keys the worker has. Newer keys are sent before any are fetched. */
  | {
      readonly type: 'keys';
      readonly id: number;
      readonly issuer: string;
      readonly place: KeyPlace;
      readonly action: 'follow' | 'fetch';
      readonly fetches: number;
    }
  | ({ readonly type: 'report'; readonly id: number } & WorkerReport)
  /** The proofs of one event-loop iteration. */
  | { readonly type: 'witness'; readonly id: number; readonly proofs: readonly WitnessedProof[] }
  | { readonly type: 'share_replay' }
  | { readonly type: 'revocation_follow' }
  | { readonly type: 'revocation_write'; readonly id: number; readonly records: readonly RevocationRecord[] }
  /** An event of a stream. Without `body`, it was too large. */
  | {
      readonly type: 'event_post';
      readonly id: number;
      readonly path: string;
      readonly method: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly body?: string;
    }
  | { readonly type: 'decisions'; readonly batch: DecisionBatch };

export type ToWorker =
  | { readonly type: 'report'; readonly id: number }
  | { readonly type: 'witnessed'; readonly id: number; readonly outcomes: readonly WitnessOutcome[] }
  | ({ readonly type: 'replay_shared' } & SharedReplay)
  /** `id` of the request, if it is a response. `throttled`: nothing is fetched now. */
  | {
      readonly type: 'keys';
      readonly name: string;
      readonly id?: number;
      readonly news: KeyNews | undefined;
      readonly throttled: boolean;
    }
  /** `hasContact`: everything in the store was sent, and it responds. */
  | { readonly type: 'revocations'; readonly records: readonly RevocationRecord[]; readonly hasContact: boolean }
  | { readonly type: 'revocation_written'; readonly id: number; readonly outcome: 'written' | 'full' | 'failed' }
  | { readonly type: 'event_response'; readonly id: number; readonly response: EventResponse }
  | { readonly type: 'connection'; readonly id: number }
  | { readonly type: 'alive' }
  | { readonly type: 'reload' }
  /** Not ready any longer; connections still arrive. */
  | { readonly type: 'drain' }
  /** No more connections arrive. */
  | { readonly type: 'shutdown' };

/** Requests to another process. Each settles with the response to its id, or with `undefined` after the time limit. */
export interface PendingRequests<Response> {
  request(send: (id: number) => void): Promise<Response | undefined>;
  settle(id: number, response: Response | undefined): void;
}

/** `timeout`: milliseconds. */
export function createPendingRequests<Response>(timeout: number): PendingRequests<Response> {
  const pending = new Map<number, (response: Response | undefined) => void>();
  let nextId = 0;
  const settle = (id: number, response: Response | undefined): void => pending.get(id)?.(response);
  return {
    settle,
    request: (send) =>
      new Promise((resolve) => {
        const id = nextId++;
        const timer = setTimeout(settle, timeout, id, undefined).unref();
        pending.set(id, (response) => {
          clearTimeout(timer);
          pending.delete(id);
          resolve(response);
        });
        send(id);
      }),
  };
}
