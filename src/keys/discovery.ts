import type { JsonObject } from '../jose/json.ts';
import { isPlainHttps } from '../outbound/https-address.ts';
import type { FetchJson } from '../outbound/outbound.ts';
import { ProviderError } from '../outbound/provider-error.ts';

/** Where keys are looked for when there is no discovery document: at `<issuer>.well-known/jwks.json`, or nowhere. */
export type DiscoveryFallback = 'well-known' | 'none';

/** What discovery starts from. */
export interface DiscoveryOptions {
  /** https URL; where it does not end in a slash, one is put in before `.well-known`. */
  readonly issuer: string;
  readonly fallback: DiscoveryFallback;
  readonly fetchJson: FetchJson;
}

/** Finds the `jwks_uri` of the issuer, within so many seconds; rejects with `ProviderError`. */
export type Discover = (timeoutSeconds: number) => Promise<string>;

/** Bytes of one answer of the identity provider, at most. */
export const maxAnswerBytes = 256 * 1024;

/**
 * Makes the discovery of one issuer (RFC 8414 §3, OpenID Connect Discovery §4). Where no JSON document
 * comes, the `jwks_uri` of an earlier one stands in, or the fallback; a document that says something wrong is not bridged.
 */
export function createDiscovery({ issuer, fallback, fetchJson }: DiscoveryOptions): Discover {
  const wellKnown = readWellKnown(issuer);
  let known = fallback === 'well-known' ? `${wellKnown}jwks.json` : undefined;
  return async (timeoutSeconds) => {
    let document: JsonObject;
    try {
      const answer = await fetchJson(`${wellKnown}openid-configuration`, { timeoutSeconds, maxBytes: maxAnswerBytes });
      document = answer.value;
    } catch (error) {
      if (known === undefined) throw error;
      return known;
    }
    known = readJwksUri(document, issuer);
    return known;
  };
}

function readWellKnown(issuer: string): string {
  // RFC 8414 §2: https, no query, no fragment. An address that is wrong is not echoed: it may hold a password.
  if (!isPlainHttps(issuer) || /[?#]/.test(issuer)) throw new TypeError('The issuer is not a plain https URL.');
  return `${issuer}${issuer.endsWith('/') ? '' : '/'}.well-known/`;
}

function readJwksUri({ issuer, jwks_uri: jwksUri }: JsonObject, expected: string): string {
  if (issuer !== expected) throw new ProviderError('foreign_issuer');
  if (!isPlainHttps(jwksUri)) throw new ProviderError('bad_jwks_uri');
  return jwksUri;
}
