import { createKeySet, type ManagedKeySet } from '../../keys/key-set.ts';
import type { KeySetEvent } from '../../keys/key-set-options.ts';
import type { Log } from '../observation/log.ts';
import type { Metrics } from '../observation/metrics.ts';
import type { Settings } from '../settings/settings.ts';
import { exitCodes, StartFailure } from './exit.ts';

/** What the keys of the service are opened with. */
export interface OpenKeysOptions {
  readonly settings: Settings;
  readonly issuer: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  readonly metrics: Metrics;
}

/**
 * Opens the key set as the variant wants it. Keys that are loaded at the start are there when it settles, or it rejects
 * with `StartFailure`. Keys that are loaded in the background are first fetched with {@link fetchInBackground}.
 */
export async function openKeys({
  settings,
  issuer,
  environment,
  log,
  metrics,
}: OpenKeysOptions): Promise<ManagedKeySet> {
  const { keyLoading, discoveryFallback } = settings.variant;
  const keys = createKeySet({
    issuer,
    environment,
    mode: keyLoading === 'at-start' ? 'once' : 'refreshing',
    fallback: discoveryFallback,
    staleSeconds: settings.keysStale,
    onEvent: (event) => logEvent(log, event),
  });
  registerKeyMetrics(metrics, keys);
  if (keyLoading === 'background') return keys;
  try {
    await keys.ready();
    return keys;
  } catch (cause) {
    keys.close();
    throw new StartFailure(
      `the keys of ${issuer} could not be loaded, and this variant does not start without them: ${describe(cause)}`,
      exitCodes.unavailable,
      { cause },
    );
  }
}

/** Begins to fetch keys that are not there yet. A failure is logged, and tried again by the key set itself. */
export function fetchInBackground(keys: ManagedKeySet): void {
  keys.ready().catch(() => {});
}

function describe(cause: unknown): string {
  return cause instanceof Error ? cause.message.replace(/\.$/, '') : 'unknown';
}

function logEvent(log: Log, event: KeySetEvent): void {
  if (event.type === 'fetched') {
    const { keys, dropped, seconds } = event;
    log.write('info', 'keys_fetched', { keys, dropped, ms: Math.round(seconds * 1000) });
  } else if (event.type === 'failed') {
    const { error, attempt, retryInSeconds } = event;
    log.write('warn', 'keys_fetch_failed', {
      kind: error.kind,
      message: error.message,
      attempt,
      ...(retryInSeconds !== undefined && { retry_in_seconds: Math.round(retryInSeconds) }),
    });
  } else if (event.type === 'dropped') {
    const { type, ...dropped } = event;
    log.write('warn', `key_${type}`, dropped);
  }
}

function registerKeyMetrics(metrics: Metrics, keys: ManagedKeySet): void {
  metrics.gauge({
    name: 'portcullis_key_set_age_seconds',
    help: 'Seconds since the fetch that brought the keys.',
    aggregate: 'max',
    read: () => keys.status().ageSeconds,
  });
  metrics.gauge({
    name: 'portcullis_key_set_keys',
    help: 'Usable keys that are loaded.',
    aggregate: 'max',
    read: () => keys.status().keys,
  });
  metrics.gauge({
    name: 'portcullis_key_set_usable',
    help: 'Whether tokens can be judged: 1 or 0.',
    aggregate: 'max',
    read: () => (keys.usable() ? 1 : 0),
  });
  metrics.gauge({
    name: 'portcullis_key_fetches_total',
    help: 'Fetches of the key set by outcome.',
    type: 'counter',
    aggregate: 'sum',
    read: () => {
      const { ok, failed } = keys.status().fetches;
      return { '{outcome="ok"}': ok, '{outcome="failed"}': failed };
    },
  });
}
