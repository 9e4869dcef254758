import type { RedisConnectionOptions } from '../../dpop/redis-url.ts';
import { createMemoryRevocationStore } from '../../revocation/memory-store.ts';
import { type RevocationStore, RevocationsFull } from '../../revocation/record.ts';
import { createRedisRevocationStore } from '../../revocation/redis-store.ts';
import {
  createRevocations,
  type RevocationParts,
  type Revocations,
  readRevocations,
} from '../../revocation/revocations.ts';
import { openSignals, type Signals } from '../../signals/receiver.ts';
import { addStreamDoubts, type StreamEvent } from '../../signals/stream.ts';
import { createStreamHealth } from '../../signals/stream-health.ts';
import { readStreams } from '../../signals/stream-options.ts';
import type { Readiness } from '../admin/admin.ts';
import { exitCodes, StartFailure } from '../lifecycle/exit.ts';
import type { Log } from '../observation/log.ts';
import { escapeLabel, type Metrics } from '../observation/metrics.ts';
import type { Settings } from '../settings/settings.ts';
import { readSignalsFile } from './signals-file.ts';

/** Revocations of the process that owns them: the only one, or the primary. */
export interface OwnedRevocations {
  readonly revocations: Revocations;
  readonly parts: RevocationParts;
  readonly signals: Signals | undefined;
  addReadiness(readiness: Readiness): Readiness;
  close(): void;
}

interface OpenOptions {
  readonly settings: Settings;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly readRedis: (settings: Settings) => Promise<RedisConnectionOptions>;
}

/** Seconds without contact after which the store is reported as degraded. */
const degradedAfter = 5;
const watchInterval = 1000;

export function hasRevocations(settings: Settings): boolean {
  const { revocationStore, logoutClients, sharedSignals, statusLists, adminKeyFile } = settings;
  const isListed = logoutClients.length > 0 || statusLists.length > 0;
  return revocationStore !== 'memory' || isListed || sharedSignals !== '' || adminKeyFile !== '';
}

/** Opens revocations by the settings; `undefined` if no source is configured. Rejects with `StartFailure`. */
export async function openRevocations(options: OpenOptions): Promise<OwnedRevocations | undefined> {
  const { settings, log, metrics, environment } = options;
  if (!hasRevocations(settings)) return undefined;
  const streams = settings.sharedSignals === '' ? undefined : readSignalsFile(settings);
  const revocations = openWith(settings, await openStore(options));
  const parts = readRevocations('openRevocations', revocations);
  const signals = streams && openSignals({ streams, environment, onStreamEvent: createStreamLog(log, metrics) }, parts);
  const stopWatching = watch(revocations, signals, log);
  registerMetrics(metrics, { settings, revocations, signals });
  return {
    revocations,
    parts,
    signals,
    addReadiness(readiness) {
      const { loaded } = revocations.status();
      const problems = describeProblems(settings, revocations, signals);
      if (problems.length === 0) return readiness;
      return {
        ready: readiness.ready && loaded,
        checks: { ...readiness.checks, ...Object.fromEntries(problems) },
        degraded: [...(readiness.degraded ?? []), ...problems.map(([name]) => name)],
      };
    },
    close() {
      stopWatching();
      signals?.close();
      revocations.close();
    },
  };
}

/** Returns revocations for an explanation outside the service: lifetimes are checked, and cutoffs are unknown. */
export function explainRevocations(settings: Settings): { readonly revocations?: Revocations } {
  if (!hasRevocations(settings)) return {};
  const store = { write: async () => undefined, follow: () => () => undefined, lease: async () => false };
  return { revocations: openWith(settings, store) };
}

export function openWorkerRevocations(settings: Settings, store: RevocationStore): Revocations {
  const revocations = openWith(settings, store);
  if (settings.sharedSignals !== '') {
    const parts = readRevocations('openWorkerRevocations', revocations);
    const streams = readStreams(readSignalsFile(settings)).map((options) => ({
      options,
      isStale: createStreamHealth(options, parts, () => Date.now() / 1000).isStale,
    }));
    addStreamDoubts(streams, parts);
  }
  return revocations;
}

function openWith(
  { maxTokenLifetime, clockTolerance, revocationStale, revocationStore }: Settings,
  store: RevocationStore,
): Revocations {
  return createRevocations({
    store,
    maxTokenLifetime,
    clockTolerance: clockTolerance.exp,
    // The memory of this service is always in contact.
    stale: revocationStore === 'memory' ? 'accept' : revocationStale,
  });
}

async function openStore({ settings, log, readRedis }: OpenOptions): Promise<RevocationStore> {
  const { revocationStore } = settings;
  if (revocationStore === 'memory') return createMemoryRevocationStore();
  const { tls, sentinel } = await readRedis(settings);
  try {
    return await createRedisRevocationStore(revocationStore, {
      ...(tls !== undefined && revocationStore.startsWith('rediss') && { tls }),
      ...(sentinel !== undefined && { sentinel }),
      onConnection: (state, cause) => {
        const message = cause instanceof Error ? { message: cause.message } : {};
        log.write(state === 'up' ? 'info' : 'warn', `revocation_store_${state}`, message);
      },
    });
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : 'Redis cannot be used';
    throw new StartFailure(problem, exitCodes.config, { cause });
  }
}

function describeProblems(
  { revocationStore }: Settings,
  revocations: Revocations,
  signals: Signals | undefined,
): readonly (readonly [string, string])[] {
  const { loaded, secondsWithoutContact: seconds } = revocations.status();
  const problems: (readonly [string, string])[] = [];
  if (!loaded) problems.push(['revocation', 'the cutoffs in Redis are not loaded yet']);
  else if (revocationStore !== 'memory' && seconds > degradedAfter) {
    problems.push(['revocation', `no contact to Redis for ${Math.round(seconds)} s: known cutoffs apply`]);
  }
  for (const { options, state } of signals?.streams ?? []) {
    if (state() !== 'ok') problems.push([`stream ${options.name}`, state()]);
  }
  return problems;
}

/** Logs what changes with time: a stream that becomes stale, and a store that becomes full. */
function watch(revocations: Revocations, signals: Signals | undefined, log: Log): () => void {
  const stale = new Set<string>();
  let rejected = 0;
  const timer = setInterval(() => {
    const status = revocations.status();
    if (status.rejected > 0 && rejected === 0)
      log.write('error', 'revocations_full', { cutoffs: status.cutoffs, problem: new RevocationsFull().message });
    rejected = status.rejected;
    for (const { options, isStale } of signals?.streams ?? []) {
      const { name } = options;
      if (isStale() === stale.has(name)) continue;
      if (isStale()) stale.add(name);
      else stale.delete(name);
      log.write(isStale() ? 'warn' : 'info', isStale() ? 'signals_stream_stale' : 'signals_stream_verified', {
        stream: name,
      });
    }
  }, watchInterval).unref();
  return () => clearInterval(timer);
}

function createStreamLog(log: Log, metrics: Metrics): (event: StreamEvent) => void {
  const received = metrics.counter('portcullis_signals_events_total', 'Security event tokens, by stream and outcome.');
  return (event) => {
    const { stream } = event;
    if (event.type === 'received') received.series(`{stream="${stream}",outcome="${event.outcome}"}`).value++;
    if (event.type === 'failed') {
      log.write('warn', 'signals_stream_failed', {
        stream,
        message: event.cause instanceof Error ? event.cause.message : 'unknown',
      });
    }
    if (event.type !== 'opened') return;
    log.write('info', 'signals_stream_opened', { stream });
    if (event.needsSubjects) {
      log.write('warn', 'signals_default_subjects', {
        stream,
        fix: 'The transmitter sends no event before subjects are added to the stream. Add them at the transmitter.',
      });
    }
  };
}

function registerMetrics(
  metrics: Metrics,
  { settings, revocations, signals }: { settings: Settings; revocations: Revocations; signals: Signals | undefined },
): void {
  const gauge = (name: string, help: string, read: () => number, type?: 'counter'): void =>
    metrics.gauge({ name: `portcullis_${name}`, help, aggregate: 'max', read, ...(type !== undefined && { type }) });
  gauge('revocation_cutoffs', 'Cutoffs that are stored.', () => revocations.status().cutoffs);
  gauge(
    'revocations_rejected_total',
    'Cutoffs that were rejected because there were too many.',
    () => revocations.status().rejected,
    'counter',
  );
  if (settings.revocationStore !== 'memory') {
    gauge(
      'revocation_store_contact_seconds',
      'Seconds since Redis last responded to the subscription.',
      () => revocations.status().secondsWithoutContact,
    );
  }
  if (signals === undefined) return;
  metrics.gauge({
    name: 'portcullis_signals_stream_stale',
    help: 'Streams that were not verified for two periods, or are paused: 1 or 0.',
    aggregate: 'max',
    read: () =>
      Object.fromEntries(
        signals.streams.map(({ options, isStale }) => [`{stream="${escapeLabel(options.name)}"}`, isStale() ? 1 : 0]),
      ),
  });
}
