import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { algorithms } from '../../jose/jws.ts';
import { createKeySet, type ManagedKeySet } from '../../keys/key-set.ts';
import type { Outbound, OutboundOptions } from '../../outbound/outbound.ts';
import { Refused } from '../../refused.ts';
import type { RevocationParts } from '../revocations.ts';
import { readSecurityEvent, type SecurityEventError } from './security-event.ts';
import { createStreamHealth } from './stream-health.ts';
import type { Stream } from './stream-options.ts';
import { createTransmitter, type RemoteStream, type TransmitterMetadata } from './transmitter.ts';

/** Result of one security event token. `not_ready`: the stream is not open yet. */
export type SignalOutcome =
  | 'cutoff'
  | 'verification'
  | 'update'
  | 'event'
  | 'subject_unsupported'
  | 'subject_foreign'
  | 'not_ready'
  | SecurityEventError;

/** A change of a stream, for logs and metrics. */
export type StreamEvent =
  | { readonly type: 'received'; readonly stream: string; readonly outcome: SignalOutcome }
  | { readonly type: 'opened'; readonly stream: string; readonly needsSubjects: boolean }
  | { readonly type: 'failed'; readonly stream: string; readonly cause: unknown };

export interface OpenStream {
  readonly options: Stream;
  /** Verifies a token and does what it says. Rejects if its cutoff cannot be stored. */
  receive(token: string): Promise<SignalOutcome>;
  state(): 'ok' | 'connecting' | 'paused' | 'stale';
  isStale(): boolean;
  close(): void;
}

export interface StreamParts {
  readonly revocations: RevocationParts;
  readonly outbound: Outbound;
  readonly keyOptions: OutboundOptions;
  readonly emit: (event: StreamEvent) => void;
  /** Returns seconds since the epoch. */
  readonly now: () => number;
}

// Seconds.
const firstRetry = 1;
const longestRetry = 60;
const leaseSeconds = 15;
const leaseEvery = 5;
/** Least time between two polls, unless the first has brought a new event. */
const pollEvery = 5;
const allAlgorithms: ReadonlySet<string> = new Set(algorithms.keys());

/** Opens a stream: registers it in the background and keeps it verified. */
export function openStream(options: Stream, { revocations, outbound, keyOptions, emit, now }: StreamParts): OpenStream {
  const { name, delivery } = options;
  const health = createStreamHealth(options, revocations, now);
  const transmitter = createTransmitter(options, outbound, now);
  const closing = new AbortController();
  let opened: { readonly metadata: TransmitterMetadata; readonly remote: RemoteStream } | undefined;
  let keys: ManagedKeySet | undefined;
  let isHolder = false;

  /** Time until `seconds` have passed, or the stream is closed. */
  const wait = (seconds: number): Promise<void> =>
    sleep(seconds * 1000, undefined, { signal: closing.signal, ref: false }).catch(() => undefined);
  const isClosed = (): boolean => closing.signal.aborted;

  const receive = async (token: string): Promise<SignalOutcome> => {
    if (opened === undefined || keys === undefined) return 'not_ready';
    const { remote } = opened;
    const issuer = { issuer: options.transmitter, keys, algorithms: allAlgorithms };
    const read = () => readSecurityEvent(token, { stream: options, issuer, remote });
    let event = read();
    if (event instanceof Refused) {
      await keys.refetch();
      event = read();
    }
    if (event instanceof Refused) return event.reason === 'keys_unavailable' ? 'not_ready' : 'invalid_key';
    if (typeof event === 'string') return event;
    if (event.kind === 'ignored') return event.cause;
    if (event.kind === 'cutoff') await revocations.set([event.cutoff]);
    if (event.kind === 'update') await health.notePaused(event.isPaused);
    if (event.kind === 'verification' && event.state !== undefined) {
      if (health.markOf('state', event.state) === undefined) return 'invalid_request';
      await health.note('verified', now());
    }
    return event.kind;
  };

  const receiveAndReport = async (token: string): Promise<SignalOutcome> => {
    const outcome = await receive(token);
    emit({ type: 'received', stream: name, outcome });
    return outcome;
  };

  const open = async (): Promise<void> => {
    const metadata = await transmitter.readMetadata();
    keys ??= createKeySet({ ...keyOptions, issuer: options.transmitter, jwksUri: metadata.jwksUri });
    const remote = await transmitter.openStream(metadata, isHolder);
    if (remote === undefined) throw new Error('The stream does not exist yet');
    await keys.refetch();
    opened = { metadata, remote };
    emit({ type: 'opened', stream: name, needsSubjects: metadata.needsSubjects });
  };

  /** Only one process of all instances requests verifications, and polls. */
  const holdLease = async (): Promise<void> => {
    while (!isClosed()) {
      isHolder = await revocations.store.lease(`signals:${name}`, leaseSeconds).catch(() => false);
      await wait(leaseEvery);
    }
  };

  const verify = async ({ metadata, remote }: NonNullable<typeof opened>): Promise<void> => {
    const paused = await transmitter.readPaused(metadata, remote.id);
    if (paused !== undefined) await health.notePaused(paused);
    if (remote.minVerifySeconds > health.period()) await health.note('period', remote.minVerifySeconds);
    if (metadata.verificationEndpoint === undefined) return health.note('unverifiable', now());
    const state = randomBytes(18).toString('base64url');
    // Stored first: the event may reach another instance.
    await revocations.note(`stream:${name}`, 'state', state, {
      mark: Math.round(now()),
      seconds: 2 * health.period() + 60,
    });
    await transmitter.verify(metadata, remote.id, state);
  };

  const keepVerified = async (): Promise<void> => {
    let failures = 0;
    while (!isClosed()) {
      try {
        // After a failure too: the transmitter may have deleted the stream.
        if (opened === undefined || failures > 0) await open();
        if (isHolder && opened !== undefined) await verify(opened);
        failures = 0;
        await wait(isHolder ? health.period() : leaseEvery);
      } catch (cause) {
        if (failures === 0) emit({ type: 'failed', stream: name, cause });
        await wait(Math.min(longestRetry, firstRetry * 2 ** failures++));
      }
    }
  };

  const keepPolling = async (): Promise<void> => {
    let acknowledged: Record<string, unknown> = {};
    let previous: readonly string[] = [];
    while (!isClosed()) {
      const endpoint = opened?.remote.pollEndpoint;
      if (!isHolder || endpoint === undefined) {
        acknowledged = {};
        await wait(1);
        continue;
      }
      const startedAt = now();
      try {
        const sets = await transmitter.poll(endpoint, { ...acknowledged, returnImmediately: false });
        acknowledged = {};
        await health.note('polled', now());
        acknowledged = await receiveAll(sets);
        const isNew = Object.keys(sets).some((jti) => !previous.includes(jti));
        previous = Object.keys(sets);
        if (!isNew) await wait(Math.max(0, pollEvery - (now() - startedAt)));
      } catch (cause) {
        emit({ type: 'failed', stream: name, cause });
        await wait(pollEvery);
      }
    }
  };

  /** Acknowledges what was stored, and nothing else: it comes again. */
  const receiveAll = async (sets: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>> => {
    const ack: string[] = [];
    const errors: Record<string, unknown> = {};
    for (const [jti, token] of Object.entries(sets)) {
      const outcome = await receiveAndReport(String(token)).catch(() => 'not_ready' as const);
      if (outcome === 'not_ready') continue;
      if (isError(outcome)) errors[jti] = { err: outcome, description: 'The security event token is not valid.' };
      else ack.push(jti);
    }
    return { ...(ack.length > 0 && { ack }), ...(Object.keys(errors).length > 0 && { setErrs: errors }) };
  };

  void holdLease();
  void keepVerified();
  if (delivery === 'poll') void keepPolling();
  return {
    options,
    receive: receiveAndReport,
    state: () =>
      health.isPaused() ? 'paused' : health.isStale() ? 'stale' : opened === undefined ? 'connecting' : 'ok',
    isStale: health.isStale,
    close() {
      closing.abort();
      keys?.close();
    },
  };
}

const errors: ReadonlySet<SignalOutcome> = new Set<SignalOutcome>([
  ...(['invalid_request', 'invalid_key', 'invalid_issuer', 'invalid_audience'] as const),
]);

export function isError(outcome: SignalOutcome): outcome is SecurityEventError {
  return errors.has(outcome);
}

/** Refuses tokens of an issuer while a stream that says so is stale. */
export function addStreamDoubts(
  streams: readonly Pick<OpenStream, 'options' | 'isStale'>[],
  revocations: Pick<RevocationParts, 'addDoubt'>,
): void {
  for (const { options, isStale } of streams) {
    if (options.onStale === 'refuse') revocations.addDoubt((issuer) => issuer === options.issuer && isStale());
  }
}
