import type { Socket } from 'node:net';
import type { Horizon } from '../../dpop/replay.ts';
import type { Reason } from '../../failures.ts';
import type { EventResponse } from '../../http/event-post.ts';
import type { RevocationRecord } from '../../revocation/record.ts';
import type { Readiness } from '../admin/admin.ts';
import type { DecisionBatch } from '../console/wire.ts';
import type { KeyNews, KeyPlace } from '../keys/service-keys.ts';
import type { MetricsSnapshot } from '../observation/metrics.ts';
import { createPendingRequests } from './pending-requests.ts';

/** Functions of the primary process that its workers call. Arguments and results are plain data. */
export interface PrimaryFunctions {
  /** The worker can take connections. */
  ready(): void;
  /** The worker has received a signal to end. */
  leaving(): void;
  alive(): void;
  /** The worker has taken the connection with this id. */
  taken(id: number): void;
  counted(metrics: MetricsSnapshot): void;
  /** Calls `keys` of the worker before it resolves, unless the primary process refuses to fetch now. */
  keys(request: KeysRequest): Promise<'sent' | 'throttled'>;
  shareReplay(): SharedReplay;
  /** Receives the proofs of one event-loop iteration. */
  witness(proofs: readonly WitnessedProof[]): readonly WitnessOutcome[];
  followRevocations(): void;
  writeRevocations(records: readonly RevocationRecord[]): Promise<'written' | 'full' | 'failed'>;
  postEvent(post: ForwardedPost): Promise<EventResponse>;
  showDecisions(batch: DecisionBatch): void;
}

/** Functions of a worker that the primary process calls. */
export interface WorkerFunctions {
  alive(): void;
  report(): WorkerReport;
  keys(changed: { readonly name: string; readonly news: KeyNews }): void;
  /** `hasContact`: everything in the store was sent, and it responds. */
  revocations(change: { readonly records: readonly RevocationRecord[]; readonly hasContact: boolean }): void;
  /** A connection that was closed meanwhile arrives without a socket. */
  connection(id: number, socket?: Socket): void;
  reload(): void;
  /** The worker is not ready any longer; connections still arrive. */
  drain(): void;
  /** No more connections arrive. */
  shutdown(): void;
}

export interface WorkerReport {
  readonly readiness: Readiness;
  readonly metrics: MetricsSnapshot;
}

/** Facts of the replay memory that all workers share. */
export interface SharedReplay extends Horizon {
  /** For nonces that are required after a start. */
  readonly nonceSecret: string;
}

export interface WitnessedProof {
  readonly jkt: string;
  readonly jti: string;
  /** Seconds since the epoch, inclusive. */
  readonly until: number;
}

/** True for the first use, false for a later one. */
export type WitnessOutcome = boolean | Reason;

export interface KeysRequest {
  readonly issuer: string;
  readonly place: KeyPlace;
  /** Requests keys that are newer than the keys of N fetches. `undefined`: no fetch is requested. */
  readonly newerThan: number | undefined;
}

/** An event of a stream. Without `body`, it was too large. */
export interface ForwardedPost {
  readonly path: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

export type WorkerChannel = Channel<PrimaryFunctions, WorkerFunctions>;
export type PrimaryChannel = Channel<WorkerFunctions, PrimaryFunctions>;

type Functions<T> = { readonly [Name in keyof T]: (argument: never, socket: never) => unknown };

/** The calls between this process and another one. A function that is not provided (yet) is not called. */
export interface Channel<Own extends Functions<Own>, Other extends Functions<Other>> {
  /** Provides functions that the other process may call. */
  provide(functions: Partial<Own>): void;
  /** Calls a function, and ignores its result. */
  call<Name extends keyof Other & string>(name: Name, ...sent: Parameters<Other[Name]>): void;
  /** Calls a function. Resolves with `undefined` after the limit (milliseconds), or if the other process ends. */
  request<Name extends keyof Other & string>(
    name: Name,
    limit: number,
    ...sent: Parameters<Other[Name]>
  ): Promise<Awaited<ReturnType<Other[Name]>> | undefined>;
  receive(message: unknown, socket?: Socket): void;
  /** Adds a function that is called when the other process has ended. */
  onClose(listener: () => void): void;
  close(): void;
}

/** `responseTo` is the id of a request. */
type Message =
  | { readonly name: string; readonly argument: unknown; readonly id?: number }
  | { readonly responseTo: number; readonly result: unknown };

export function createChannel<Own extends Functions<Own>, Other extends Functions<Other>>(
  send: (message: object, socket?: Socket) => void,
): Channel<Own, Other> {
  const provided = new Map<string, (argument: unknown, socket?: Socket) => unknown>();
  const pending = createPendingRequests<unknown>();
  const closeListeners: (() => void)[] = [];
  return {
    provide(functions) {
      for (const [name, run] of Object.entries(functions)) provided.set(name, run as () => unknown); // as typed by `Own`
    },
    call: (name, ...[argument, socket]: readonly [unknown?, Socket?]) => send({ name, argument }, socket),
    request: <Result>(name: string, limit: number, ...[argument]: readonly unknown[]) =>
      pending.request(limit, (id) => send({ name, argument, id })) as Promise<Result | undefined>, // as typed by `Other`
    async receive(received, socket) {
      const message = received as Message; // only the other process writes here
      if ('responseTo' in message) return pending.settle(message.responseTo, message.result);
      const run = provided.get(message.name);
      const result = run?.(message.argument, socket);
      if (run !== undefined && message.id !== undefined) send({ responseTo: message.id, result: await result });
    },
    onClose: (listener) => void closeListeners.push(listener),
    close() {
      pending.close();
      for (const listener of closeListeners) listener();
    },
  };
}
