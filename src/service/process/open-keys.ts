import { createKeySet, type ManagedKeySet } from '../../keys/key-set.ts';
import type { FetchedKeys, KeySetEvent } from '../../keys/key-set-options.ts';
import type { Log } from '../observation/log.ts';
import { escapeLabel, type Metrics } from '../observation/metrics.ts';
import type { Settings } from '../settings/settings.ts';
import { exitCodes, StartFailure } from './exit.ts';
import { openKeysCache } from './keys-cache.ts';
import type { KeyNews, KeySource, ServiceKeys } from './service-keys.ts';

/** What the keys of the service are opened with. */
export interface OpenKeysOptions {
  readonly settings: Settings;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** The one process that fetches keys. It keeps them on disk if `KEYS_CACHE` names a file. */
export interface KeyOwner extends KeySource {
  /** Tells what there is to know of an issuer that is open. */
  news(issuer: string): KeyNews | undefined;
  /** Calls after each fetch, whatever came of it. */
  onNews(listener: (issuer: string, news: KeyNews) => void): void;
}

/** Makes the owner of the keys; reads the file that keeps them. */
export async function openKeyOwner(options: OpenKeysOptions): Promise<KeyOwner> {
  const { settings, environment, log, metrics } = options;
  const { keyLoading, discoveryFallback } = settings.variant;
  const { keysStale: staleSeconds, keysCache: file } = settings;
  const cache = file === '' ? undefined : await openKeysCache({ file, staleSeconds, log });
  const opened = new Map<string, ManagedKeySet>();
  const listeners = new Set<(issuer: string, news: KeyNews) => void>();
  registerKeyMetrics(metrics, opened);

  const tell = (issuer: string, keys: ManagedKeySet, event: KeySetEvent): void => {
    logEvent(log, issuer, event);
    const fetched = event.type === 'fetched' ? keys.fetched() : undefined;
    if (fetched !== undefined) cache?.keep(issuer, fetched);
    if (event.type === 'dropped') return;
    // The key set tells of a fetch a moment before it forgets the failures before it.
    setImmediate(() => {
      for (const listener of listeners) listener(issuer, describeNews(keys, fetched));
    });
  };

  const openIssuer = (issuer: string): ManagedKeySet => {
    const restored = cache?.find(issuer);
    const keys: ManagedKeySet = createKeySet({
      issuer,
      environment,
      mode: keyLoading === 'at-start' ? 'once' : 'refreshing',
      fallback: discoveryFallback,
      staleSeconds,
      ...(restored !== undefined && { restored }),
      onEvent: (event) => tell(issuer, keys, event),
    });
    if (restored !== undefined) {
      const { keys: entries, ageSeconds } = restored;
      log.write('info', 'keys_restored', { issuer, keys: entries.length, age_seconds: Math.round(ageSeconds) });
    }
    opened.set(issuer, keys);
    return keys;
  };

  return {
    async open(issuer) {
      const known = opened.get(issuer);
      if (known !== undefined) return serve(known);
      const keys = openIssuer(issuer);
      if (keyLoading === 'at-start') await awaitKeys(keys, issuer);
      return serve(keys);
    },
    news(issuer) {
      const keys = opened.get(issuer);
      return keys === undefined ? undefined : describeNews(keys, keys.fetched());
    },
    onNews: (listener) => void listeners.add(listener),
    async close() {
      for (const keys of opened.values()) keys.close();
      await cache?.flush();
    },
  };
}

function serve(keys: ManagedKeySet): ServiceKeys {
  return {
    find: keys.find,
    has: keys.has,
    usable: keys.usable,
    refetch: keys.refetch,
    get generation() {
      return keys.generation;
    },
    problem: () => keys.status().lastError?.message,
    // Also if keys of an earlier start are at hand: they may have been withdrawn.
    fetch: () => void keys.refetch(),
  };
}

async function awaitKeys(keys: ManagedKeySet, issuer: string): Promise<void> {
  try {
    await keys.refetch();
    await keys.ready();
  } catch (cause) {
    keys.close();
    throw new StartFailure(
      `the keys of ${issuer} could not be loaded, and this variant does not start without them: ${describe(cause)}`,
      exitCodes.unavailable,
      { cause },
    );
  }
}

function describeNews(keys: ManagedKeySet, fetched: FetchedKeys | undefined): KeyNews {
  const { usableSeconds, lastError, fetches } = keys.status();
  // Infinity has no form in JSON.
  const bounded = Math.min(usableSeconds, Number.MAX_SAFE_INTEGER);
  const { generation } = keys;
  return { fetched, generation, fetches: fetches.ok, usableSeconds: bounded, problem: lastError?.message };
}

function describe(cause: unknown): string {
  return cause instanceof Error ? cause.message.replace(/\.$/, '') : 'unknown';
}

function logEvent(log: Log, issuer: string, event: KeySetEvent): void {
  if (event.type === 'fetched') {
    const { keys, dropped, seconds } = event;
    log.write('info', 'keys_fetched', { issuer, keys, dropped, ms: Math.round(seconds * 1000) });
  } else if (event.type === 'failed') {
    const { error, attempt, retryInSeconds } = event;
    log.write('warn', 'keys_fetch_failed', {
      issuer,
      kind: error.kind,
      message: error.message,
      attempt,
      ...(retryInSeconds !== undefined && { retry_in_seconds: Math.round(retryInSeconds) }),
    });
  } else if (event.type === 'dropped') {
    const { type, ...dropped } = event;
    log.write('warn', `key_${type}`, { issuer, ...dropped });
  }
}

/** One series for each issuer: a gate may have several. */
function registerKeyMetrics(metrics: Metrics, opened: ReadonlyMap<string, ManagedKeySet>): void {
  const read = (of: (keys: ManagedKeySet) => number | undefined, labels = ''): Record<string, number> =>
    Object.fromEntries(
      [...opened].flatMap(([issuer, keys]) => {
        const value = of(keys);
        return value === undefined ? [] : [[`{issuer="${escapeLabel(issuer)}"${labels}}`, value]];
      }),
    );
  metrics.gauge({
    name: 'portcullis_key_set_age_seconds',
    help: 'Seconds since the fetch that brought the keys, by issuer.',
    aggregate: 'max',
    read: () => read((keys) => keys.status().ageSeconds),
  });
  metrics.gauge({
    name: 'portcullis_key_set_keys',
    help: 'Usable keys that are loaded, by issuer.',
    aggregate: 'max',
    read: () => read((keys) => keys.status().keys),
  });
  metrics.gauge({
    name: 'portcullis_key_set_usable',
    help: 'Whether tokens of an issuer can be judged: 1 or 0.',
    aggregate: 'max',
    read: () => read((keys) => (keys.usable() ? 1 : 0)),
  });
  metrics.gauge({
    name: 'portcullis_key_fetches_total',
    help: 'Fetches of the key set by issuer and outcome.',
    type: 'counter',
    aggregate: 'sum',
    read: () => ({
      ...read((keys) => keys.status().fetches.ok, ',outcome="ok"'),
      ...read((keys) => keys.status().fetches.failed, ',outcome="failed"'),
    }),
  });
}
