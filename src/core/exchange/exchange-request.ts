import type { Credentials } from '../http/credentials.ts';
import { type ClientCredentials, createAuthentication } from '../introspection/client-authentication.ts';
import { type JsonObject, maxTime } from '../jose/json.ts';
import { createDiscovery } from '../keys/discovery.ts';
import { createOutbound, type FetchedJson, type Outbound, type OutboundOptions } from '../outbound/outbound.ts';
import { ProviderError } from '../outbound/provider-error.ts';
import { Refused } from '../refused.ts';
import type { ExchangedToken } from './exchange-cache.ts';

/** API that the new token is for; `audience` or `resource` is required. */
export interface ExchangeTarget {
  /** Name of the API at the provider. */
  readonly audience?: string;
  /** URI of the API (RFC 8707). */
  readonly resource?: string;
  /** Scopes of the new token. Default: the provider decides. */
  readonly scopes?: readonly string[];
}

/** Options of {@link createTokenExchange}. */
export interface TokenExchangeOptions extends OutboundOptions, ClientCredentials {
  /** Issuer of the callers' tokens, compared byte for byte with `iss`. */
  readonly issuer: string;
  /** The token endpoint: an https URL. Default: `token_endpoint` of the issuer's metadata. */
  readonly endpoint?: string;
  /** `allow`: tokens with `cnf` are exchanged too, and the new ones are not bound. Default: they are refused. */
  readonly bound?: 'allow';
  /** Token of this client as the actor (RFC 8693 §2.1), or the function that reads it before each request. Default: none. */
  readonly actorToken?: string | (() => string);
  /** Time limit per request in seconds, to the last byte of the response. Default: 3. */
  readonly timeoutSeconds?: number;
  /** Maximum number of requests in flight; half of them of one caller. Default: 64. */
  readonly maxCalls?: number;
}

/** A target with its part of cache keys and its fields of requests. */
export interface PreparedTarget {
  readonly key: string;
  readonly fields: Readonly<Record<string, string>>;
}

export function writeTarget({ audience, resource, scopes = [] }: ExchangeTarget): PreparedTarget['fields'] {
  return {
    ...(audience !== undefined && { audience }),
    ...(resource !== undefined && { resource }),
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
  };
}

const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token';
const grantType = 'urn:ietf:params:oauth:grant-type:token-exchange';
const maxAnswerBytes = 64 * 1024;
/** Seconds that the address of the endpoint is used before the metadata is read again. */
const endpointSeconds = 600;

/** Creates the requests of one client. Throws `TypeError` for credentials that cannot work. */
export function createExchangeRequest(options: TokenExchangeOptions, maxCalls: number, timeoutSeconds: number) {
  const { actorToken } = options;
  const outbound = createOutbound(options, maxCalls);
  const authenticate = createAuthentication(options, options.issuer);
  const findEndpoint = createFindEndpoint(options, outbound, timeoutSeconds);
  const limits = { timeoutSeconds, maxBytes: maxAnswerBytes };

  /** Requests a token. Rejects with `ProviderError`. */
  const request = async (
    { credentials: { token: subject }, now }: { credentials: Pick<Credentials, 'token'>; now: () => number },
    { fields }: Pick<PreparedTarget, 'fields'>,
  ): Promise<ExchangedToken | Refused> => {
    const endpoint = await findEndpoint(now());
    const { authorization, fields: client } = authenticate();
    const body = new URLSearchParams({
      ...{ grant_type: grantType, subject_token: subject, subject_token_type: accessTokenType },
      ...{ requested_token_type: accessTokenType, ...fields, ...client },
      ...(actorToken !== undefined && { actor_token: readActor(actorToken), actor_token_type: accessTokenType }),
    }).toString();
    const response = await outbound.postForm(endpoint, { body, authorization, errors: 'read' }, limits);
    const issued = readExchange(response, subject);
    if (issued instanceof Refused) return issued;
    return Object.freeze({ token: issued.token, expiresAt: now() + issued.lifetime });
  };
  return { request, close: outbound.close };
}

function readActor(actorToken: string | (() => string)): string {
  try {
    const token = typeof actorToken === 'function' ? actorToken() : actorToken;
    if (typeof token === 'string' && token !== '') return token;
  } catch (cause) {
    throw new ProviderError('no_actor_token', { cause });
  }
  throw new ProviderError('no_actor_token');
}

/** Creates the function that finds the token endpoint. An address that was read remains in use if it cannot be read again. */
function createFindEndpoint(
  { endpoint, issuer }: TokenExchangeOptions,
  { fetchJson }: Outbound,
  timeoutSeconds: number,
): (now: number) => string | Promise<string> {
  if (endpoint !== undefined) return () => endpoint;
  const discover = createDiscovery({ issuer, fallback: 'none', fetchJson, member: 'token_endpoint' });
  let found: Promise<string> | undefined;
  let foundAt = 0;
  return (now) => {
    // A clock that is set back must not prolong it.
    if (found !== undefined && Math.abs(now - foundAt) < endpointSeconds) return found;
    foundAt = now;
    found = discover(timeoutSeconds).then(({ address }) => address);
    found.catch(() => {
      found = undefined;
    });
    return found;
  };
}

const maxTokenLength = 16 * 1024;
/** RFC 6750 §2.1. */
const tokenGrammar = /^[\w.~+/-]+=*$/;

/** Errors about the token (RFC 6749 §5.2, RFC 8693 §2.2.2). All others are about this client, or the provider. */
const refusing: ReadonlySet<unknown> = new Set(['invalid_grant', 'invalid_target', 'invalid_scope']);

/** Reads a response (RFC 8693 §2.2). `subject` is the caller's token, which must not come back. Throws `ProviderError`. */
function readExchange({ status, value }: FetchedJson, subject: string) {
  if (status === 200) {
    const { access_token: token, token_type: type, issued_token_type: issued } = value;
    const lifetime = readLifetime(value);
    const isToken = typeof token === 'string' && token.length <= maxTokenLength && tokenGrammar.test(token);
    const isBearer = typeof type === 'string' && type.toLowerCase() === 'bearer' && issued === accessTokenType;
    if (isToken && isBearer && token !== subject && lifetime !== undefined) return { token, lifetime };
    throw new ProviderError('not_an_exchange');
  }
  const { error } = value;
  if (refusing.has(error)) return new Refused('exchange_refused', { context: { error: String(error) } });
  const [code = ''] = (typeof error === 'string' && /^[\w.-]{1,64}$/.exec(error)) || [];
  throw new ProviderError('status', { detail: `${status} ${code}`.trim() });
}

/** A number, or a string of digits, which some providers send; for no end, some send the largest integer of 64 bits. A token without a lifetime is used for 60 seconds. */
function readLifetime({ expires_in: seconds = 60 }: JsonObject): number | undefined {
  if (typeof seconds === 'string' && /^\d+$/.test(seconds)) return Math.min(Number(seconds), maxTime);
  return typeof seconds === 'number' ? seconds : undefined;
}
