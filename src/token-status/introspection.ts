import { LRUCache } from 'lru-cache';
import { AccessError } from '../failures.ts';
import type { JsonObject } from '../jose/json.ts';
import { sizeOfJson } from '../jose/json-size.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { checkOptionMembers, type OptionMembers } from '../option-members.ts';
import { isPlainHttps } from '../outbound/https-address.ts';
import { createOutbound, type OutboundOptions, outboundMembers } from '../outbound/outbound.ts';
import { ProviderError, toProviderError } from '../outbound/provider-error.ts';
import { createFairCalls } from './fair-calls.ts';

/** Options of {@link createIntrospection}. */
export interface IntrospectionOptions extends OutboundOptions {
  /** The introspection endpoint (RFC 7662 §2): an https URL. */
  readonly endpoint: string;
  /** Issuer of the tokens: becomes `iss` where an answer has none, and is compared byte for byte where it has. */
  readonly issuer: string;
  /** Name and secret of this resource server at the endpoint, sent as `client_secret_basic` (RFC 6749 §2.3.1). */
  readonly clientId: string;
  readonly clientSecret: string;
  /** `opaque`: tokens that are no JWS; those that are stay with their signature. `all`: every token. Default `opaque`. */
  readonly tokens?: 'opaque' | 'all';
  /**
   * Whether answers must name an audience. `optional` where the endpoint calls no token active but those for this resource
   * server (RFC 7662 §4). Default `required`.
   */
  readonly audience?: 'required' | 'optional';
  /** Seconds that an answer is kept, 0 to 3600; a token that is revoked is let in for so long. Default 60. */
  readonly maxSeconds?: number;
  /** Seconds that it is kept that a token is not active, 0 to 3600. Default 10. */
  readonly inactiveSeconds?: number;
  /** Answers that are kept at most, of each sort. Default 10 000, in at most 32 MiB. */
  readonly maxEntries?: number;
  /** Seconds for one call, to the last byte of the answer. Default 3. */
  readonly timeoutSeconds?: number;
  /**
   * Calls without an answer at most; half of them of one client. Tokens beyond that wait, each client behind itself, and
   * are refused if too many do. Default 64.
   */
  readonly maxCalls?: number;
  /** Seconds of a clock that never steps back. Default `performance.now()`. */
  readonly now?: () => number;
}

/** Asks the authorization server about tokens (RFC 7662). */
export interface Introspection extends Pick<Required<IntrospectionOptions>, 'issuer' | 'audience'> {
  /** Whether a token is judged by asking, rather than by its signature. */
  handles(token: string): boolean;
  /**
   * The answer about an active token: at once where it is known. `client` is the address that sent it: each waits behind
   * its own calls only. `digest` is the SHA-256 of the token: only another
   * token with the same digest could be taken for it. An `AccessError` if there is none: `malformed_token`,
   * `inactive_token`, `introspection_unavailable`.
   */
  introspect(token: string, digest: string, client?: string): MaybePromise<JsonObject | AccessError>;
  status(): IntrospectionStatus;
  /** Ends calls in flight, and makes no more. */
  close(): void;
}

/** How an introspection does; safe to show to an operator. */
export interface IntrospectionStatus {
  /** Answers that are kept. */
  readonly active: number;
  readonly inactive: number;
  /** Calls without an answer. */
  readonly inFlight: number;
  /** Calls so far. */
  readonly calls: { readonly ok: number; readonly failed: number };
}

interface Entry {
  readonly answer: JsonObject;
  /** Seconds on the clock of `now`. */
  readonly until: number;
}

const members: OptionMembers<IntrospectionOptions> = {
  endpoint: true,
  issuer: true,
  clientId: true,
  clientSecret: true,
  tokens: true,
  audience: true,
  maxSeconds: true,
  inactiveSeconds: true,
  maxEntries: true,
  timeoutSeconds: true,
  maxCalls: true,
  ...outboundMembers,
  now: true,
};
const maxAnswerBytes = 64 * 1024;
const maxCacheBytes = 32 * 1024 * 1024;
const bytesPerEntry = 512;
const maxKeptSeconds = 3600;
/** Tokens of one client that wait, for each call at a time; and of how many such clients. */
const waitingPerCall = 4;
const waitingClients = 8;
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
  assertOptions({ ...options, tokens, audience, timeoutSeconds, maxCalls, maxSeconds, inactiveSeconds, maxEntries });
  const outbound = createOutbound(options, maxCalls);
  const authorization = formatBasic(options.clientId, options.clientSecret);
  const active = new LRUCache<string, Entry>({ max: maxEntries, maxSize: maxCacheBytes });
  // Apart: whoever tries tokens at random pushes out no answer about a good one.
  const inactive = new LRUCache<string, number>({ max: maxEntries });
  const inFlight = new Map<string, Promise<JsonObject | AccessError>>();
  const calls = { ok: 0, failed: 0 };
  /** Tokens that had no turn. Whoever makes tokens up has no use for one of them twice; a client that is refused comes again. */
  const turnedAway = new LRUCache<string, true>({ max: maxEntries });
  const fair = createFairCalls({
    maxCalls,
    // Half is left for all others, however many tokens one client makes up.
    maxPerClient: Math.ceil(maxCalls / 2),
    maxWaitingPerClient: maxCalls * waitingPerCall,
    maxWaiting: maxCalls * waitingPerCall * waitingClients,
    waitSeconds: timeoutSeconds,
    tooLate: () => unavailable(new ProviderError('too_many_calls')),
  });

  async function ask(token: string, digest: string): Promise<JsonObject | AccessError> {
    const body = new URLSearchParams({ token, token_type_hint: 'access_token' }).toString();
    const limits = { timeoutSeconds, maxBytes: maxAnswerBytes };
    let answer: JsonObject;
    try {
      const { value } = await outbound.postForm(endpoint, { body, authorization }, limits);
      if (typeof value['active'] !== 'boolean') throw new ProviderError('not_an_introspection');
      answer = value;
      calls.ok++;
    } catch (error) {
      calls.failed++;
      return unavailable(toProviderError(error));
    }
    // Whether it has expired is judged at each request, kept or not: only the ceiling counts here.
    const time = now();
    if (answer['active'] === false) {
      inactive.set(digest, time + inactiveSeconds);
      return new AccessError('inactive_token');
    }
    const size = sizeOfJson(answer) + bytesPerEntry;
    active.set(digest, { answer, until: time + maxSeconds }, { size });
    return answer;
  }

  return {
    issuer,
    audience,
    handles: (token) => tokens === 'all' || !isJws(token),
    introspect(token, digest, client = '') {
      const time = now();
      const known = active.get(digest);
      if (known !== undefined && time < known.until) return known.answer;
      const refusedUntil = inactive.get(digest);
      if (refusedUntil !== undefined && time < refusedUntil) return new AccessError('inactive_token');
      const asked = inFlight.get(digest);
      if (asked !== undefined) return asked;
      if (!tokenGrammar.test(token)) return new AccessError('malformed_token');
      // A token that was active before, or comes again, does not wait behind tokens that nobody has seen.
      const sort = known !== undefined ? 'known' : turnedAway.has(digest) ? 'again' : 'new';
      const call = fair.run(`${sort} ${networkOf(client)}`, () => {
        turnedAway.delete(digest);
        return ask(token, digest);
      });
      if (call === undefined) {
        turnedAway.set(digest, true);
        return unavailable(new ProviderError('too_many_calls'));
      }
      const settled = call
        .catch((error: unknown) => {
          turnedAway.set(digest, true);
          return returnRefusal(error);
        })
        .finally(() => inFlight.delete(digest));
      inFlight.set(digest, settled);
      return settled;
    },
    status: () => ({ active: active.size, inactive: inactive.size, inFlight: fair.running, calls: { ...calls } }),
    close: () => outbound.close(),
  };
}

/** Whoever has one address of IPv6 has the 2^64 of its network: those count as one. */
function networkOf(address: string): string {
  // As IPv4 is mapped into IPv6, each stands for itself.
  if (!address.includes(':') || address.includes('.')) return address;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail === undefined) return groups.slice(0, 4).join(':');
  const rest = tail === '' ? [] : tail.split(':');
  const zeros: readonly string[] = Array(Math.max(0, 8 - groups.length - rest.length)).fill('0');
  return [...groups, ...zeros, ...rest].slice(0, 4).join(':');
}

/** header.claims.signature; whatever else it may be, it cannot be verified by a signature. */
function isJws(token: string): boolean {
  return /^[^.]+\.[^.]*\.[^.]+$/.test(token);
}

/** A call that never had its turn is a refusal; what else is thrown is a defect. */
function returnRefusal(error: unknown): AccessError {
  if (error instanceof AccessError) return error;
  throw error;
}

function unavailable(cause: ProviderError): AccessError {
  return new AccessError('introspection_unavailable', { context: { kind: cause.kind }, cause });
}

/** RFC 6749 §2.3.1: name and secret are form-encoded before they are joined. */
function formatBasic(clientId: string, clientSecret: string): string {
  const encode = (text: string): string => new URLSearchParams([['', text]]).toString().slice(1);
  return `Basic ${Buffer.from(`${encode(clientId)}:${encode(clientSecret)}`).toString('base64')}`;
}

type Checked = Required<Omit<IntrospectionOptions, keyof OutboundOptions | 'now'>>;

/** What was written is not repeated: an address may hold a password. */
function assertOptions(options: Checked): void {
  if (!isPlainHttps(options.endpoint)) {
    throw new TypeError('endpoint: write an https URL without credentials and fragment');
  }
  for (const name of ['issuer', 'clientId', 'clientSecret'] as const) {
    if (typeof options[name] !== 'string' || options[name] === '') throw new TypeError(`${name}: write a text`);
  }
  if (!['opaque', 'all'].includes(options.tokens)) throw new TypeError('tokens: write opaque or all');
  if (!['required', 'optional'].includes(options.audience)) throw new TypeError('audience: write required or optional');
  for (const name of ['maxSeconds', 'inactiveSeconds'] as const) {
    if (!(options[name] >= 0 && options[name] <= maxKeptSeconds)) {
      throw new TypeError(`${name}: write seconds from 0 to ${maxKeptSeconds}`);
    }
  }
  if (!(options.timeoutSeconds > 0 && options.timeoutSeconds <= 60)) {
    throw new TypeError('timeoutSeconds: write seconds above 0, 60 at most');
  }
  for (const name of ['maxCalls', 'maxEntries'] as const) {
    if (!(Number.isInteger(options[name]) && options[name] >= 1)) throw new TypeError(`${name}: write 1 or more`);
  }
}
