import { readAlgs } from '../../core/keys/jwks.ts';
import { createKeySet, type KeySetStatus, type ManagedKeySet } from '../../core/keys/key-set.ts';
import type { KeySetEvent } from '../../core/keys/key-set-options.ts';
import { messageOf, showText } from '../../core/shown-text.ts';
import type { KeysView } from '../console/wire.ts';
import { exitCodes, StartFailure } from '../lifecycle/exit.ts';
import type { ProcessContext } from '../lifecycle/process-context.ts';
import type { Log } from '../observation/log.ts';
import { escapeLabel, type Metrics } from '../observation/metrics.ts';
import { openKeysCache } from './keys-cache.ts';

export interface KeyPlace {
  readonly jwksUri?: string | undefined;
  readonly insecure?: boolean | undefined;
}

/** The keys of one issuer. */
export interface ServiceKeys {
  readonly issuer: string;
  readonly set: ManagedKeySet;
}

export type KeyOwner = Awaited<ReturnType<typeof openKeyOwner>>;
export type KeySource = Pick<KeyOwner, 'open' | 'keep'>;

/** Opens the owner of a service's key sets. Stores them on disk if `KEYS_CACHE` names a file. */
export async function openKeyOwner({ settings, environment, log, metrics }: ProcessContext) {
  const { keyLoading, discoveryFallback } = settings.variant;
  const { keysStale: staleSeconds, keysCache: file } = settings;
  const cache = file === '' ? undefined : openKeysCache({ file, staleSeconds, log });
  const opened = new Map<string, ServiceKeys>();
  registerMetrics(metrics, () => opened.values());
  const help = 'Duration of successful fetches of the key set, by issuer.';
  const fetchSeconds = metrics.counter('portcullis_key_fetch_seconds_total', help);

  return {
    /** Rejects with `StartFailure` if the variant does not start without keys, and there are none. */
    async open(issuer: string, place: KeyPlace = {}): Promise<ServiceKeys> {
      const name = nameKeys(issuer, place);
      const known = opened.get(name);
      if (known !== undefined) return known;
      const { jwksUri, insecure = false } = place;
      const restored = cache?.find(name);
      fetchSeconds.series(labelOf(issuer)); // begins at 0
      const set: ManagedKeySet = createKeySet({
        ...{ issuer, environment, staleSeconds, insecure },
        mode: keyLoading === 'at-start' ? 'once' : 'refreshing',
        ...(jwksUri === undefined ? { fallback: discoveryFallback } : { jwksUri }),
        ...(restored !== undefined && { restored }),
        onEvent(event) {
          logEvent(log, issuer, event);
          // The first event is emitted while `createKeySet` runs.
          if (event.type !== 'fetched') return;
          fetchSeconds.series(labelOf(issuer)).value += event.seconds;
          const fetched = set.fetched();
          if (fetched !== undefined) cache?.keep(name, fetched);
        },
      });
      const keys = { issuer, set };
      if (restored !== undefined) {
        const { keys: entries, ageSeconds } = restored;
        log.write('info', 'keys_restored', { issuer, keys: entries.length, age_seconds: Math.round(ageSeconds) });
      }
      opened.set(name, keys);
      if (keyLoading === 'at-start') await awaitKeys(keys);
      return keys;
    },
    /** Closes the sets whose names are not in `used`. */
    keep(used: ReadonlyMap<string, ServiceKeys>): void {
      for (const [name, { set }] of opened) {
        if (used.has(name)) continue;
        set.close();
        opened.delete(name);
      }
    },
    views: (): readonly KeysView[] => [...opened.values()].map(describeView),
    async close(): Promise<void> {
      for (const { set } of opened.values()) set.close();
      await cache?.flush();
    },
  };
}

async function awaitKeys({ issuer, set }: ServiceKeys): Promise<void> {
  try {
    await set.refetch();
    await set.ready();
  } catch (cause) {
    set.close();
    const effect = 'could not be loaded, and this variant does not start without them';
    const message = `the keys of ${issuer} ${effect}: ${messageOf(cause).replace(/\.$/, '')}`;
    throw new StartFailure(message, cause, exitCodes.unavailable);
  }
}

function describeView({ issuer, set }: ServiceKeys): KeysView {
  const { usable, ageSeconds, lastError } = set.status();
  return {
    ...{ issuer, usable },
    ids: set.fetched()?.published.map((id) => showText(id, 80)) ?? [],
    ...(ageSeconds !== undefined && { ageSeconds: Math.round(ageSeconds) }),
    ...(lastError !== undefined && { problem: lastError.message }),
  };
}

function logEvent(log: Log, issuer: string, event: KeySetEvent): void {
  if (event.type === 'fetched') {
    const { keys, dropped, seconds } = event;
    log.write('info', 'keys_fetched', { issuer, keys, dropped, ms: Math.round(seconds * 1000) });
  } else if (event.type === 'failed') {
    const { error, attempt, retryInSeconds: seconds } = event;
    const { kind, url, message, fix } = error;
    const retry = seconds !== undefined && { retry_in_seconds: Math.round(seconds) };
    log.write('warn', 'keys_fetch_failed', { issuer, kind, url, message, fix, attempt, ...retry });
  } else if (event.type === 'dropped') {
    const { type, ...dropped } = event;
    log.write('warn', `key_${type}`, { issuer, ...dropped });
  } else {
    log.write('warn', 'keys_insecure', { issuer });
  }
}

type Read = (status: KeySetStatus) => number | undefined;
type Combine = (one: number, other: number) => number;

const add: Combine = (one, other) => one + other;

/** Registers the metrics of each issuer. One issuer may have several key sets, at different URLs. */
function registerMetrics(metrics: Metrics, opened: () => Iterable<ServiceKeys>): void {
  const read = (of: Read, combine: Combine, labels = ''): Record<string, number> => {
    const series: Record<string, number> = {};
    for (const { issuer, set } of opened()) {
      const value = of(set.status());
      if (value === undefined) continue;
      const name = labelOf(issuer, labels);
      const before = series[name];
      series[name] = before === undefined ? value : combine(before, value);
    }
    return series;
  };
  const gauge = (name: string, help: string, of: Read, combine: Combine): void =>
    metrics.gauge(`portcullis_key_set_${name}`, help, () => read(of, combine));
  gauge('age_seconds', 'Seconds since the last fetch, by issuer.', ({ ageSeconds }) => ageSeconds, Math.max);
  gauge('keys', 'Usable keys that are loaded, by issuer.', ({ keys }) => keys, add);
  gauge('usable', '1 if tokens of the issuer can be validated, otherwise 0.', ({ usable }) => Number(usable), Math.min);
  metrics.gauge('portcullis_key_fetches_total', 'Fetches of the key set by issuer and outcome.', () => ({
    ...read(({ fetches }) => fetches.ok, add, ',outcome="ok"'),
    ...read(({ fetches }) => fetches.failed, add, ',outcome="failed"'),
  }));
}

function labelOf(issuer: string, more = ''): string {
  return `{issuer="${escapeLabel(issuer)}"${more}}`;
}

/** Describes the keys for `/readyz`: `ok`, or the reason that no token with an enabled algorithm can be validated. */
export function describeReadyKeys({ set }: ServiceKeys, enabled: readonly string[]): string {
  if (!set.usable()) return `none: ${set.status().lastError?.message ?? 'not fetched yet'}`;
  const published = readAlgs(set.fetched()?.keys ?? []);
  if (enabled.some((alg) => published.has(alg))) return 'ok';
  return `none: the published keys are for ${[...published].join(', ')}, and ${enabled.join(', ')} is enabled`;
}

/** Names a key set by its issuer and location. No URL has a space. */
export function nameKeys(issuer: string, { jwksUri, insecure }: KeyPlace = {}): string {
  return [issuer, ...(jwksUri === undefined ? [] : [jwksUri]), ...(insecure === true ? ['insecure'] : [])].join(' ');
}
