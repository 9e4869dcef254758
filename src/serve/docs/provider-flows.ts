import type { JsonObject } from '../../jose/json.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
import { isPlainHttps } from '../../outbound/https-address.ts';

/** How clients get a token at the provider: OAuth Flows Object of OpenAPI 3.1. */
export type OAuthFlows = Readonly<Record<string, unknown>>;

/** The flows of the provider; `undefined` while they are not known. */
export type FindFlows = () => MaybePromise<OAuthFlows | undefined>;

/** What the flows are read from. */
export interface FlowSources {
  /** Fetches the discovery document; rejects if there is none. */
  readonly fetchDocument: () => Promise<JsonObject>;
  /** Scopes of the endpoints, each with a description. */
  readonly scopes: Readonly<Record<string, string>>;
  /** Seconds since the epoch. */
  readonly now: () => number;
}

/** Seconds. */
const freshFor = 600;
/** Seconds after a failure. */
const retryAfter = 60;
// OpenID Connect Discovery §3: what a provider supports that does not say it.
const usualGrants: readonly unknown[] = ['authorization_code', 'implicit'];

/**
 * Reads the flows when somebody asks for them, and not before: a service that nobody reads the documentation of makes
 * no call. Many who ask at once cost the provider one call.
 */
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
      // The document of the API is as good without them: what was known stays.
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

/** Flows that have all the addresses that they need. */
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
