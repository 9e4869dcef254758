import { callable, hasFunctions, isWithin, type OptionMembers, oneOf } from '../option-members.ts';
import { isPlainHttps } from '../outbound/https-address.ts';
import { type FetchJson, type OutboundOptions, outboundMembers } from '../outbound/outbound.ts';
import { describeFailure, type ProviderError } from '../outbound/provider-error.ts';
import { createDiscovery, type Discover, type DiscoveryFallback, readWellKnown } from './discovery.ts';
import type { DroppedKey } from './jwks.ts';
import type { KeyCache } from './key-cache.ts';
import type { FetchedKeys } from './loaded-keys.ts';

/** An event of a key set, for log lines and metrics. */
export type KeySetEvent =
  | {
      /** A key set arrived. */
      readonly type: 'fetched';
      /** Number of usable keys. */
      readonly keys: number;
      /** Number of keys that are not used. */
      readonly dropped: number;
      /** Duration of the fetch. */
      readonly seconds: number;
    }
  | {
      /** A fetch failed. */
      readonly type: 'failed';
      /** Cause of the failure. */
      readonly error: ProviderError;
      /** Number of failures in a row. */
      readonly attempt: number;
      /** Seconds until the automatic retry; `undefined` without one. */
      readonly retryInSeconds: number | undefined;
    }
  | ({
      /** An unused key; reported again only when the dropped keys change. */
      readonly type: 'dropped';
    } & DroppedKey)
  | {
      /** Plain http is allowed for these keys; reported once, when the key set is created. */
      readonly type: 'insecure';
    };

/** Describes the beginning of an outage; `undefined` for another event. */
export function showOutage(event: KeySetEvent): string | undefined {
  const isFirst = event.type === 'failed' && event.attempt === 1;
  return isFirst ? `portcullis: the keys cannot be fetched. ${describeFailure(event.error)}` : undefined;
}

export function warnOfOutage(event: KeySetEvent): void {
  const line = showOutage(event);
  // biome-ignore lint/suspicious/noConsole: nothing else would report it.
  if (line !== undefined) console.warn(line);
}

/** Options for loading keys from any location. */
export interface LoadingOptions extends OutboundOptions {
  /**
   * Allows plain http for this issuer and its key addresses, for a provider without TLS on a developer's machine or inside a
   * cluster. An attacker on the network path can replace the keys. TLS checks do not change. Default: `false`.
   */
  readonly insecure?: boolean;
  /** `refreshing`: kept fresh in the background. `once`: loaded once, and good for ever. Default `refreshing`. */
  readonly mode?: 'refreshing' | 'once';
  /** Action without a discovery document. Default: `well-known`; not with `jwksUri`. */
  readonly fallback?: DiscoveryFallback;
  /** Seconds beyond freshness that keys may be used while fetches fail, 0 to 86400. Default 3600. */
  readonly staleSeconds?: number;
  /** A set that was fetched before, to start from. It is replaced by the first fetch that succeeds. */
  readonly restored?: FetchedKeys;
  /**
   * Keeps fetched keys outside of this process, so that a new one verifies its first token without a fetch: keys that are
   * fresh are used, older ones only while fetches fail. Default: none.
   */
  readonly keyCache?: KeyCache;
  /** Seconds of a clock that never steps back. Default `performance.now()`. */
  readonly now?: () => number;
  /** 0 to 1, for the jitter. Default `Math.random`. */
  readonly random?: () => number;
  /**
   * Called for each event. Errors it throws, or rejects with, are ignored. Default: one line by `console.warn` when fetches
   * begin to fail.
   */
  readonly onEvent?: (event: KeySetEvent) => unknown;
}

/** Location of keys: one of the two is required. */
export type KeyPlace =
  | {
      /** https URL, compared byte for byte with the discovery document's. */
      readonly issuer: string;
      /** https URL of the keys, without discovery. Default: `jwks_uri` of the discovery document. */
      readonly jwksUri?: string;
    }
  | {
      /** Not needed with `jwksUri`. */
      readonly issuer?: string;
      /** Required without `issuer`. */
      readonly jwksUri: string;
    };

/** Options for loading an issuer's keys: from `jwksUri`, or by the discovery document of `issuer`. */
export type KeySetOptions = LoadingOptions & KeyPlace;

const maxStaleSeconds = 86_400;

export const keySetMembers: OptionMembers<KeySetOptions> = {
  staleSeconds: [isWithin(0, maxStaleSeconds), `write seconds from 0 to ${maxStaleSeconds}`],
  insecure: [(value) => typeof value === 'boolean', 'write true or false'],
  mode: oneOf('refreshing', 'once'),
  fallback: oneOf('well-known', 'none'),
  keyCache: [hasFunctions('read', 'write'), 'write { read(url), write(url, keys) }'],
  ...{ issuer: true, jwksUri: true, restored: true, ...outboundMembers },
  ...{ now: callable, random: callable, onEvent: callable },
};

/** Creates the locator of the keys: a fixed address, or discovery with `known` as the earlier `jwks_uri`. Throws `TypeError`. */
export function createLocate(options: KeySetOptions, fetchJson: FetchJson, known?: string): Discover {
  const { issuer, jwksUri, insecure = false, fallback } = options;
  if (jwksUri === undefined) {
    if (issuer === undefined) throw new TypeError('createKeySet: write issuer, jwksUri, or both');
    return createDiscovery({ issuer, insecure, fallback: fallback ?? 'well-known', known, fetchJson });
  }
  if (fallback !== undefined) throw new TypeError('fallback: it is for discovery, and with jwksUri there is none');
  checkJwksUri(jwksUri, insecure);
  return async () => ({ address: jwksUri });
}

/** Names the place of keys in a cache: the address that is requested first. */
export function nameInCache({ issuer = '', jwksUri, insecure = false }: KeySetOptions): string {
  return jwksUri ?? `${readWellKnown(issuer, insecure)}openid-configuration`;
}

/** Throws `TypeError` for an address that keys cannot be fetched from. It is not repeated: it may hold a password. */
export function checkJwksUri(jwksUri: unknown, insecure: boolean): void {
  if (isPlainHttps(jwksUri, insecure) && !jwksUri.includes('#')) return;
  const hint = insecure ? '' : '; a provider without TLS needs insecure: true';
  throw new TypeError(`jwksUri: write an https URL without credentials and fragment${hint}`);
}
