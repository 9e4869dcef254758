import { readJwks } from '../../keys/jwks.ts';
import { createKeySet, type ManagedKeySet } from '../../keys/key-set.ts';
import type { FetchedKeys, KeySetEvent } from '../../keys/key-set-options.ts';
import { showText } from '../../shown-text.ts';
import type { KeysView } from '../console/wire.ts';
import { exitCodes, StartFailure } from '../lifecycle/exit.ts';
import type { Log } from '../observation/log.ts';
import { escapeLabel, type Metrics } from '../observation/metrics.ts';
import type { Settings } from '../settings/settings.ts';
import { registerKeyMetrics } from './key-metrics.ts';
import { openKeysCache } from './keys-cache.ts';
import {
  collectAlgorithms,
  type KeyNews,
  type KeyPlace,
  type KeySource,
  nameKeys,
  type ServiceKeys,
} from './service-keys.ts';

export interface OpenKeysOptions {
  readonly settings: Settings;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** The keys in the one process that fetches them. Stores them on disk if `KEYS_CACHE` names a file. */
export interface KeyOwner extends KeySource {
  news(name: string): KeyNews | undefined;
  /** Calls the listener after each fetch, failed ones too. */
  onNews(listener: (name: string, news: KeyNews) => void): void;
  views(): readonly KeysView[];
}

interface Opened {
  readonly issuer: string;
  readonly keys: ManagedKeySet;
}

export async function openKeyOwner(options: OpenKeysOptions): Promise<KeyOwner> {
  const { settings, environment, log, metrics } = options;
  const { keyLoading, discoveryFallback } = settings.variant;
  const { keysStale: staleSeconds, keysCache: file } = settings;
  const cache = file === '' ? undefined : await openKeysCache({ file, staleSeconds, log });
  const opened = new Map<string, Opened>();
  const listeners = new Set<(name: string, news: KeyNews) => void>();
  registerKeyMetrics(metrics, () => opened.values());
  const fetchSeconds = metrics.counter(
    'portcullis_key_fetch_seconds_total',
    'Duration of successful fetches of the key set, by issuer.',
  );

  const report = (name: string, { issuer, keys }: Opened, event: KeySetEvent): void => {
    logEvent(log, issuer, event);
    if (event.type === 'fetched') fetchSeconds.series(labelOf(issuer)).value += event.seconds;
    const fetched = event.type === 'fetched' ? keys.fetched() : undefined;
    if (fetched !== undefined) cache?.keep(name, fetched);
    if (event.type === 'dropped') return;
    // The key set reports a fetch before it resets earlier failures.
    setImmediate(() => {
      for (const listener of listeners) listener(name, describeNews(keys, fetched));
    });
  };

  const openIssuer = (issuer: string, place: KeyPlace): Opened => {
    const name = nameKeys(issuer, place);
    const { jwksUri, insecure = false } = place;
    const restored = cache?.find(name);
    fetchSeconds.series(labelOf(issuer)); // begins at 0
    const keys: ManagedKeySet = createKeySet({
      ...{ issuer, environment, staleSeconds, insecure },
      mode: keyLoading === 'at-start' ? 'once' : 'refreshing',
      ...(jwksUri === undefined ? { fallback: discoveryFallback } : { jwksUri }),
      ...(restored !== undefined && { restored }),
      onEvent(event) {
        // Emitted while `createKeySet` runs.
        if (event.type === 'insecure') log.write('warn', 'keys_insecure', { issuer });
        else report(name, one, event);
      },
    });
    const one: Opened = { issuer, keys };
    if (restored !== undefined) {
      const { keys: entries, ageSeconds } = restored;
      log.write('info', 'keys_restored', { issuer, keys: entries.length, age_seconds: Math.round(ageSeconds) });
    }
    opened.set(name, one);
    return one;
  };

  return {
    async open(issuer, place = {}) {
      const known = opened.get(nameKeys(issuer, place));
      if (known !== undefined) return serve(known);
      const one = openIssuer(issuer, place);
      if (keyLoading === 'at-start') await awaitKeys(one.keys, issuer);
      return serve(one);
    },
    news(name) {
      const keys = opened.get(name)?.keys;
      return keys === undefined ? undefined : describeNews(keys, keys.fetched());
    },
    onNews: (listener) => void listeners.add(listener),
    views: () => [...opened.values()].map(describeOpened),
    async close() {
      for (const { keys } of opened.values()) keys.close();
      await cache?.flush();
    },
  };
}

function labelOf(issuer: string): string {
  return `{issuer="${escapeLabel(issuer)}"}`;
}

function serve({ issuer, keys }: Opened): ServiceKeys {
  let known: { readonly generation: number; readonly algorithms: ReadonlySet<string> } | undefined;
  return {
    issuer,
    find: keys.find,
    has: keys.has,
    usable: keys.usable,
    refetch: keys.refetch,
    get generation() {
      return keys.generation;
    },
    algorithms() {
      const { generation } = keys;
      if (known?.generation !== generation) {
        known = { generation, algorithms: collectAlgorithms(readJwks({ keys: keys.fetched()?.keys ?? [] })) };
      }
      return known.algorithms;
    },
    problem: () => keys.status().lastError?.message,
    // Even if restored keys are usable: the provider may have withdrawn them.
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

function describeOpened({ issuer, keys }: Opened): KeysView {
  const { usable, ageSeconds, lastError } = keys.status();
  return {
    ...{ issuer, usable },
    ids: keys.fetched()?.published.map((id) => showText(id, 80)) ?? [],
    ...(ageSeconds !== undefined && { ageSeconds: Math.round(ageSeconds) }),
    ...(lastError !== undefined && { problem: lastError.message }),
  };
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
