import { showUrl } from '../http/shown-url.ts';
import type { JsonObject } from '../jose/json.ts';
import { isPlainHttps } from '../outbound/https-address.ts';
import type { FetchJson } from '../outbound/outbound.ts';
import { failAt, ProviderError, toProviderError } from '../outbound/provider-error.ts';
import { showText } from '../shown-text.ts';
import { type DroppedKey, readJwks, showDropped } from './jwks.ts';

/** Key address without a discovery document: `<issuer>.well-known/jwks.json`, or none. */
export type DiscoveryFallback = 'well-known' | 'none';

export interface DiscoveryOptions {
  /** https URL; if it does not end in a slash, one is put in before `.well-known`. */
  readonly issuer: string;
  /** True if plain http is allowed too, for the issuer and for its `jwks_uri`. Default: `false`. */
  readonly insecure?: boolean;
  readonly fallback: DiscoveryFallback;
  /** `jwks_uri` of an earlier document, used like one read here. */
  readonly known?: string | undefined;
  /** Member with the address. Default: `jwks_uri`. A `token_endpoint` gets secrets: https only. */
  readonly member?: 'jwks_uri' | 'token_endpoint';
  readonly fetchJson: FetchJson;
}

/** Finds the address in the metadata of the issuer, within so many seconds; rejects with `ProviderError`. */
export type Discover = (timeoutSeconds: number) => Promise<Found>;

export interface Found {
  readonly address: string;
  /** Error of the metadata, if the address is from elsewhere. */
  readonly failure?: ProviderError;
}

export const maxAnswerBytes = 256 * 1024;

/** Creates the discovery of one issuer (RFC 8414 §3). Only a missing document is bridged, by an earlier `jwks_uri` or the fallback. */
export function createDiscovery(options: DiscoveryOptions): Discover {
  const { issuer, insecure = false, fallback, fetchJson, member = 'jwks_uri' } = options;
  const wellKnown = readWellKnown(issuer, insecure);
  let known = options.known ?? (fallback === 'well-known' ? `${wellKnown}jwks.json` : undefined);
  const metadata = `${wellKnown}openid-configuration`;
  const fail = failAt(metadata);
  return async (timeoutSeconds) => {
    let document: JsonObject;
    try {
      document = (await fetchJson(metadata, { timeoutSeconds, maxBytes: maxAnswerBytes })).value;
    } catch (error) {
      if (known === undefined) throw error;
      return { address: known, failure: toProviderError(error) };
    }
    const { issuer: named, [member]: address } = document;
    if (named !== issuer) {
      const shown = typeof named === 'string' ? showText(showUrl(named)) : 'none';
      return fail(new ProviderError('foreign_issuer', { detail: `${shown} instead of ${showUrl(issuer)}` }));
    }
    if (!isPlainHttps(address, insecure && member === 'jwks_uri')) return fail(new ProviderError(`bad_${member}`));
    known = address;
    return { address };
  };
}

/** Fetches a key set that has a usable key. */
export async function fetchJwks(
  { address, failure }: Found,
  fetchJson: FetchJson,
  { timeoutSeconds, onDropped }: { timeoutSeconds: number; onDropped: (dropped: readonly DroppedKey[]) => void },
) {
  try {
    const { value, maxAge } = await fetchJson(address, { timeoutSeconds, maxBytes: maxAnswerBytes });
    const jwks = readJwks(value);
    onDropped(jwks.dropped);
    if (jwks.entries.length > 0) return { jwks, maxAge };
    const detail = jwks.dropped.slice(0, 3).map(showDropped).join('; ') || 'empty';
    throw new ProviderError('no_usable_keys', { detail });
  } catch (error) {
    const { kind } = toProviderError(error);
    // An address that was guessed and does not exist is not the cause.
    const isGuess = failure !== undefined && (failure.kind !== 'status' || kind === 'status');
    return failAt(address)(isGuess ? failure : error);
  }
}

/** The `.well-known/` address of an issuer. Throws `TypeError` for an issuer without one. */
export function readWellKnown(issuer: string, insecure: boolean): string {
  // RFC 8414 §2: https, no query, no fragment. An address that is wrong is not echoed: it may hold a password.
  if (!isPlainHttps(issuer, insecure) || /[?#]/.test(issuer)) {
    const hint = insecure ? ', nor an http one' : '; a provider without TLS needs insecure: true';
    throw new TypeError(`issuer: it is not a plain https URL${hint}`);
  }
  return `${issuer}${issuer.endsWith('/') ? '' : '/'}.well-known/`;
}
