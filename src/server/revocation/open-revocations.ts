import { createMemoryRevocationStore } from '../../core/revocation/memory-store.ts';
import { type RevocationStore, RevocationsFull } from '../../core/revocation/record.ts';
import { createRedisRevocationStore } from '../../core/revocation/redis-store.ts';
import { createRevocations, type Revocations, readRevocations } from '../../core/revocation/revocations.ts';
import { openSignals, type Signals } from '../../core/revocation/signals/receiver.ts';
import type { StreamEvent } from '../../core/revocation/signals/stream.ts';
import { messageOf } from '../../core/shown-text.ts';
import { addDegraded, type Readiness } from '../admin/admin.ts';
import { StartFailure } from '../lifecycle/exit.ts';
import type { ProcessContext } from '../lifecycle/process-context.ts';
import type { Log } from '../observation/log.ts';
import { escapeLabel, type Metrics } from '../observation/metrics.ts';
import { findRevocationSources, type Settings } from '../settings/settings.ts';
import { readSignalsFile } from './signals-file.ts';

export type OwnedRevocations = NonNullable<Awaited<ReturnType<typeof openRevocations>>>;

/** Seconds without contact after which the store is reported as degraded. */
const degradedAfter = 5;
const watchInterval = 1000;
/** Seconds for which values of another program in the store are reported as degraded. */
const disturbedFor = 3600;

export function hasRevocations(settings: Settings): boolean {
  return settings.revocationStore !== 'memory' || findRevocationSources(settings).length > 0;
}

/** Opens revocations by the settings; `undefined` if no source is configured. Rejects with `StartFailure`. */
export async function openRevocations(options: ProcessContext) {
  const { settings, log, metrics, environment } = options;
  if (!hasRevocations(settings)) return undefined;
  const streams = settings.sharedSignals === '' ? undefined : readSignalsFile(settings);
  const revocations = openWith(settings, await openStore(options));
  const parts = readRevocations('openRevocations', revocations);
  const signals = streams && openSignals({ streams, environment, onStreamEvent: createStreamLog(log, metrics) }, parts);
  const watch = createWatch(revocations, signals, log);
  const watching = setInterval(watch.look, watchInterval).unref();
  registerMetrics(metrics, { settings, revocations, signals });
  return {
    ...{ revocations, parts, signals },
    addReadiness(readiness: Readiness): Readiness {
      watch.look();
      const problems = describeProblems({ settings, revocations, signals }, watch.isDisturbed());
      return addDegraded({ ...readiness, ready: readiness.ready && revocations.status().loaded }, problems);
    },
    close(): void {
      clearInterval(watching);
      signals?.close();
      revocations.close();
    },
  };
}

/** Returns revocations for an explanation outside the service: lifetimes are checked, and cutoffs are unknown. */
export function explainRevocations(settings: Settings): { readonly revocations?: Revocations } {
  if (!hasRevocations(settings)) return {};
  const store = { write: async () => undefined, follow: () => undefined, unfollow: () => undefined };
  return { revocations: openWith(settings, store) };
}

/** Creates revocations by the settings, over a store. */
export function openWith(settings: Settings, store: RevocationStore): Revocations {
  const { maxTokenLifetime, clockTolerance, revocationStale, revocationStore } = settings;
  // The memory of this service is always in contact.
  const stale = revocationStore === 'memory' ? 'accept' : revocationStale;
  return createRevocations({ store, maxTokenLifetime, clockTolerance: clockTolerance.exp, stale });
}

async function openStore({ settings, log }: ProcessContext): Promise<RevocationStore> {
  const { revocationStore, sentinelPassword: password } = settings;
  if (revocationStore === 'memory') return createMemoryRevocationStore();
  try {
    return await createRedisRevocationStore(revocationStore, {
      sentinel: { password },
      onConnection: (state, cause) => logConnection(log, 'revocation', state, cause),
    });
  } catch (cause) {
    throw new StartFailure(messageOf(cause), cause);
  }
}

/** Logs that the connection to a store was opened or lost. */
export function logConnection(log: Log, store: 'replay' | 'revocation', state: 'up' | 'down', cause: unknown): void {
  const message = cause instanceof Error ? { message: cause.message } : {};
  log.write(state === 'up' ? 'info' : 'warn', `${store}_store_${state}`, message);
}

interface Watched {
  readonly settings: Settings;
  readonly revocations: Revocations;
  readonly signals: Signals | undefined;
}

function describeProblems({ settings, revocations, signals }: Watched, isDisturbed: boolean) {
  const { loaded, secondsWithoutContact: seconds, invalid } = revocations.status();
  const isAway = settings.revocationStore !== 'memory' && seconds > degradedAfter;
  const store = loaded
    ? `no contact to Redis for ${Math.round(seconds)} s: known cutoffs apply`
    : 'the cutoffs in Redis are not loaded yet';
  const failing = signals?.streams.filter(({ state }) => state() !== 'ok') ?? [];
  return {
    ...(isDisturbed && { revocation: `${invalid} values in Redis were not valid: another program writes to its keys` }),
    ...((isAway || !loaded) && { revocation: store }),
    ...Object.fromEntries(failing.map(({ options, state }) => [`stream ${options.name}`, state()])),
  };
}

/** Creates the watch that logs what changes with time: a stale stream, a full store, and a store to which others write. */
function createWatch(revocations: Revocations, signals: Signals | undefined, log: Log) {
  const stale = new Set<string>();
  let rejectedBefore = 0;
  let invalidBefore = 0;
  let disturbedUntil = 0;
  const isDisturbed = (): boolean => performance.now() < disturbedUntil;
  const look = (): void => {
    const { rejected, cutoffs, invalid } = revocations.status();
    if (rejected > 0 && rejectedBefore === 0) {
      log.write('error', 'revocations_full', { cutoffs, problem: new RevocationsFull().message });
    }
    rejectedBefore = rejected;
    if (invalid > invalidBefore) {
      const fix =
        'Find the program that writes to keys that begin with portcullis:revocation:, and restrict it by an ACL.';
      if (!isDisturbed()) log.write('warn', 'revocation_records_invalid', { values: invalid - invalidBefore, fix });
      disturbedUntil = performance.now() + disturbedFor * 1000;
      invalidBefore = invalid;
    }
    for (const { options, isStale } of signals?.streams ?? []) {
      const { name: stream } = options;
      if (isStale() && !stale.has(stream)) {
        stale.add(stream);
        log.write('warn', 'signals_stream_stale', { stream });
      } else if (!isStale() && stale.delete(stream)) {
        log.write('info', 'signals_stream_verified', { stream });
      }
    }
  };
  return { look, isDisturbed };
}

function createStreamLog(log: Log, metrics: Metrics): (event: StreamEvent) => void {
  const received = metrics.counter('portcullis_signals_events_total', 'Security event tokens, by stream and outcome.');
  return (event) => {
    const { stream } = event;
    if (event.type === 'received') received.series(`{stream="${stream}",outcome="${event.outcome}"}`).value++;
    if (event.type === 'failed') {
      log.write('warn', 'signals_stream_failed', { stream, message: messageOf(event.cause) });
    }
    if (event.type === 'opened') log.write('info', 'signals_stream_opened', { stream });
  };
}

function registerMetrics(metrics: Metrics, { settings, revocations, signals }: Watched): void {
  const gauge = (name: string, help: string, read: (status: ReturnType<Revocations['status']>) => number): void =>
    metrics.gauge(`portcullis_${name}`, help, () => read(revocations.status()));
  gauge('revocation_cutoffs', 'Cutoffs that are stored.', ({ cutoffs }) => cutoffs);
  const rejections = 'Cutoffs that were rejected because there were too many.';
  gauge('revocations_rejected_total', rejections, ({ rejected }) => rejected);
  if (settings.revocationStore !== 'memory') {
    const contact = 'Seconds since Redis last responded to the subscription.';
    gauge('revocation_store_contact_seconds', contact, ({ secondsWithoutContact }) => secondsWithoutContact);
    gauge('revocation_records_invalid_total', 'Values in Redis that were not valid cutoffs.', ({ invalid }) => invalid);
  }
  if (signals === undefined) return;
  const help = 'Streams without a verification event for two periods: 1 or 0.';
  const read = ({ options, isStale }: Signals['streams'][number]) =>
    [`{stream="${escapeLabel(options.name)}"}`, isStale() ? 1 : 0] as const;
  metrics.gauge('portcullis_signals_stream_stale', help, () => Object.fromEntries(signals.streams.map(read)));
}
