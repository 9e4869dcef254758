import { LRUCache } from 'lru-cache';
import type { AccessError } from '../failures.ts';
import { namePeer } from '../http/peer-name.ts';
import type { JsonObject } from '../jose/json.ts';
import {
  callable,
  checkOptionMembers,
  isText,
  isWithin,
  type OptionCheck,
  type OptionMembers,
  oneOf,
} from '../option-members.ts';
import { isPlainHttps } from '../outbound/https-address.ts';
import { createOutbound, type OutboundOptions, outboundMembers } from '../outbound/outbound.ts';
import { ProviderError, toProviderError } from '../outbound/provider-error.ts';
import { Refused } from '../refused.ts';
import { type ClientCredentials, clientMembers, createAuthentication } from './client-authentication.ts';
import { createFairCalls, limitCalls } from './fair-calls.ts';

/** Options of {@link createIntrospection}. */
export interface IntrospectionOptions extends OutboundOptions, ClientCredentials {
  /** The introspection endpoint (RFC 7662 §2): an https URL. */
  readonly endpoint: string;
  /** Issuer of the tokens: becomes `iss` of a response without one, else the two are compared byte for byte. */
  readonly issuer: string;
  /** `opaque`: tokens that are not JWS; a JWS is verified by its signature. `all`: every token. Default: `opaque`. */
  readonly tokens?: 'opaque' | 'all';
  /**
   * Rule for `aud` of responses. `optional` if the endpoint reports as active only tokens for this resource server (RFC 7662
   * §4). Default: `required`.
   */
  readonly audience?: 'required' | 'optional';
  /** Maximum time in the cache, in seconds, 0 to 3600; a revoked token is accepted for that time. Default: 60. */
  readonly maxSeconds?: number;
  /** Seconds that it is kept that a token is not active, 0 to 3600. Default 10. */
  readonly inactiveSeconds?: number;
  /** Maximum number of cached responses, of each sort. Default: 10 000, in at most 32 MiB. */
  readonly maxEntries?: number;
  /** Time limit per request in seconds, to the last byte of the response. Default: 3. */
  readonly timeoutSeconds?: number;
  /**
   * Maximum number of requests in flight; half of them of one client. Further tokens wait, each client in its own queue, and
   * are refused if too many wait. Default: 64.
   */
  readonly maxCalls?: number;
  /** Seconds of a clock that never steps back. Default `performance.now()`. */
  readonly now?: () => number;
}

/** Queries the authorization server about tokens (RFC 7662). */
export interface Introspection extends Pick<Required<IntrospectionOptions>, 'issuer' | 'audience' | 'maxSeconds'> {
  /** Reports whether a token needs introspection instead of a signature check. */
  handles(token: string): boolean;
  /**
   * Returns the response about an active token, synchronously if it is cached. `client` is the sender's address: each waits
   * for its own requests only. `digest` is the SHA-256 of the token: only another token with the same digest could be
   * mistaken for it. An `AccessError` if there is none: `malformed_token`, `inactive_token`, `introspection_unavailable`.
   * `since` is the mark of a cutoff that may refuse the token: a response that was cached before that cutoff was known is
   * discarded.
   */
  introspect(
    token: string,
    digest: string,
    client?: string,
    since?: number,
  ): JsonObject | AccessError | Promise<JsonObject | AccessError>;
  /** Returns the state of the cache and the number of calls. */
  status(): IntrospectionStatus;
  /** Ends calls in flight, and makes no more. */
  close(): void;
}

/** Status of an introspection; safe to show to an operator. */
export interface IntrospectionStatus {
  /** Number of cached responses. */
  readonly active: number;
  /** Number of cached responses that a token is inactive. */
  readonly inactive: number;
  /** Number of requests in flight. */
  readonly inFlight: number;
  /** Calls so far. */
  readonly calls: { readonly ok: number; readonly failed: number };
}

interface Entry {
  readonly answer: JsonObject;
  /** Seconds on the clock of `now`. */
  readonly until: number;
  /** Mark of the cutoff that was known when the request was sent; 0 if there was none. */
  readonly since: number;
}

const maxAnswerBytes = 64 * 1024;
const maxCacheBytes = 32 * 1024 * 1024;
const bytesPerEntry = 512;
/** Bytes of a parsed response, for each character. */
const bytesPerCharacter = 4;
const kept: OptionCheck = [isWithin(0, 3600), 'write seconds from 0 to 3600'];
const members: OptionMembers<IntrospectionOptions> = {
  endpoint: [(value) => isPlainHttps(value), 'write an https URL without credentials and fragment', 'required'],
  issuer: [isText, 'write a text', 'required'],
  tokens: oneOf('opaque', 'all'),
  audience: oneOf('required', 'optional'),
  ...{ ...clientMembers, maxEntries: clientMembers.maxCalls, maxSeconds: kept, inactiveSeconds: kept },
  ...{ ...outboundMembers, now: callable },
};
/** header.claims.signature; whatever else it may be, it cannot be verified by a signature. */
const jwsForm = /^[^.]+\.[^.]*\.[^.]+$/;
/** RFC 6750 §2.1: nothing else goes out in a call. */
const tokenGrammar = /^[\w.~+/-]+=*$/;

/**
 * Creates the introspection of one endpoint; nothing is connected before the first token. One call for a token at a time,
 * however many requests wait for it. Throws `TypeError` for options that cannot work.
 *
 * @example
 * const introspection = createIntrospection({
 *   endpoint: 'https://idp.example/introspect', issuer: 'https://idp.example/', clientId: 'api', clientSecret,
 * });
 */
export function createIntrospection(options: IntrospectionOptions): Introspection {
  checkOptionMembers<IntrospectionOptions>('createIntrospection', options, members);
  const { endpoint, issuer, tokens = 'opaque', audience = 'required' } = options;
  const { timeoutSeconds = 3, maxCalls = 64, now = () => performance.now() / 1000 } = options;
  const { maxSeconds = 60, inactiveSeconds = 10, maxEntries = 10_000 } = options;
  const outbound = createOutbound(options, maxCalls);
  const authenticate = createAuthentication(options, issuer);
  const active = new LRUCache<string, Entry>({ max: maxEntries, maxSize: maxCacheBytes });
  // Separate: a client that tries random tokens evicts no response about a valid one.
  const inactive = new LRUCache<string, number>({ max: maxEntries });
  const inFlight = new Map<string, Promise<JsonObject | Refused>>();
  const calls = { ok: 0, failed: 0 };
  /** Tokens that had no turn. An attacker sends no invented token twice; a client that is refused repeats its token. */
  const turnedAway = new LRUCache<string, true>({ max: maxEntries });
  const fair = createFairCalls(limitCalls(maxCalls, timeoutSeconds));

  async function ask(token: string, digest: string, since: number): Promise<JsonObject | Refused> {
    const limits = { timeoutSeconds, maxBytes: maxAnswerBytes };
    let answer: JsonObject;
    try {
      const { authorization, fields } = authenticate();
      const body = new URLSearchParams({ token, token_type_hint: 'access_token', ...fields }).toString();
      const { value } = await outbound.postForm(endpoint, { body, authorization }, limits);
      if (typeof value['active'] !== 'boolean') throw new ProviderError('not_an_introspection');
      answer = value;
      calls.ok++;
    } catch (error) {
      calls.failed++;
      return unavailable(toProviderError(error));
    }
    // Expiry is checked at each request, cached or not: only the ceiling counts here.
    const time = now();
    if (answer['active'] === false) {
      inactive.set(digest, time + inactiveSeconds);
      return new Refused('inactive_token');
    }
    const size = JSON.stringify(answer).length * bytesPerCharacter + bytesPerEntry;
    active.set(digest, { answer, until: time + maxSeconds, since }, { size });
    return answer;
  }

  return {
    ...{ issuer, audience, maxSeconds },
    handles: (token) => tokens === 'all' || !jwsForm.test(token),
    introspect(token, digest, client = '', since = 0) {
      const time = now();
      const known = active.get(digest);
      if (known !== undefined && time < known.until && known.since >= since) return known.answer;
      const refusedUntil = inactive.get(digest);
      if (refusedUntil !== undefined && time < refusedUntil) return new Refused('inactive_token');
      const flight = since === 0 ? digest : `${digest} ${since}`;
      const asked = inFlight.get(flight);
      if (asked !== undefined) return asked;
      if (!tokenGrammar.test(token)) return new Refused('malformed_token');
      // A token that was active before, or is sent again, does not wait for unknown tokens.
      const sort = known !== undefined ? 'known' : turnedAway.has(digest) ? 'again' : 'new';
      const turnAway = (): Refused => {
        turnedAway.set(digest, true);
        return unavailable(new ProviderError('too_many_calls'));
      };
      const run = (): Promise<JsonObject | Refused> => {
        turnedAway.delete(digest);
        return ask(token, digest, since);
      };
      const call = fair.run(`${sort} ${namePeer(client)}`, run, turnAway);
      if (call === undefined) return turnAway();
      const settled = call.finally(() => inFlight.delete(flight));
      inFlight.set(flight, settled);
      return settled;
    },
    status: () => ({ active: active.size, inactive: inactive.size, inFlight: fair.running(), calls: { ...calls } }),
    close: () => outbound.close(),
  };
}

function unavailable(cause: ProviderError): Refused {
  return new Refused('introspection_unavailable', { context: { kind: cause.kind }, cause });
}
