import type { JsonObject } from '../../jose/json.ts';
import { isPlainHttps } from '../../outbound/https-address.ts';

export type OAuthFlows = Readonly<Record<string, unknown>>;

export type FindFlows = () => OAuthFlows | undefined | Promise<OAuthFlows | undefined>;

export interface FlowSources {
  readonly fetchDocument: () => Promise<JsonObject>;
  readonly scopes: Readonly<Record<string, string>>;
  /** Seconds since the epoch. */
  readonly now: () => number;
}

/** Seconds. */
const freshFor = 600;
/** Seconds after a failure. */
const retryAfter = 60;
// OpenID Connect Discovery §3: the default.
const usualGrants: readonly unknown[] = ['authorization_code', 'implicit'];

/** Fetches the flows when the documentation is read first. Concurrent readers share one request to the provider. */
export function createFindFlows({ fetchDocument, scopes, now }: FlowSources): FindFlows {
  let known: OAuthFlows | undefined;
  let dueAt = Number.NEGATIVE_INFINITY;
  let inFlight: Promise<OAuthFlows | undefined> | undefined;
  const read = async (): Promise<OAuthFlows | undefined> => {
    try {
      const document = await fetchDocument();
      known = readFlows(document, scopes);
      dueAt = now() + freshFor;
    } catch {
      // Earlier flows remain; the document is useful without them.
      dueAt = now() + retryAfter;
    } finally {
      inFlight = undefined;
    }
    return known;
  };
  return () => {
    if (inFlight === undefined && now() < dueAt) return known;
    inFlight ??= read();
    return inFlight;
  };
}

export function readFlows(document: JsonObject, scopes: Readonly<Record<string, string>>): OAuthFlows | undefined {
  const {
    authorization_endpoint: authorizationUrl,
    token_endpoint: tokenUrl,
    grant_types_supported: grants,
  } = document;
  if (!isPlainHttps(tokenUrl)) return undefined;
  const supported = Array.isArray(grants) ? grants : usualGrants;
  return {
    ...(supported.includes('authorization_code') &&
      isPlainHttps(authorizationUrl) && { authorizationCode: { authorizationUrl, tokenUrl, scopes } }),
    ...(supported.includes('client_credentials') && { clientCredentials: { tokenUrl, scopes } }),
  };
}
