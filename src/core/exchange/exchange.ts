import { createFairCalls, limitCalls } from '../introspection/fair-calls.ts';
import { ProviderError, toProviderError } from '../outbound/provider-error.ts';
import { type Evidence, Refused } from '../refused.ts';
import { type Access, type AdmittedToken, findAdmitted, refuseEnded, steady } from '../resource-server/access.ts';
import {
  type CachedExchange,
  type ExchangeCache,
  type ExchangedToken,
  type ExchangeEntry,
  type ExchangeKey,
  isToken,
} from './exchange-cache.ts';
import {
  createExchangeRequest,
  type ExchangeTarget,
  type PreparedTarget,
  type TokenExchangeOptions,
  writeTarget,
} from './exchange-request.ts';

export type ExchangeOutcome = 'ok' | 'refused' | 'unavailable';

type Result = ExchangedToken | Refused;

const refusedSeconds = 5;
/** Seconds between two tokens of one key that upstreams have refused. */
const discardSeconds = 10;
/** Longest time before its end that a token is not used any more, in seconds; at most a tenth of its lifetime. */
const maxMargin = 10;

/** Opens the exchange of one client at one endpoint; nothing is connected before the first token. Throws `TypeError` for credentials that cannot work. */
export function openExchange(
  options: TokenExchangeOptions,
  cache: ExchangeCache,
  onExchange: (outcome: ExchangeOutcome, seconds: number) => void = () => {},
) {
  const { issuer, bound, timeoutSeconds = 3, maxCalls = 64 } = options;
  const { request, close } = createExchangeRequest(options, maxCalls, timeoutSeconds);
  const exchange = createCachedExchange(request, cache, onExchange);
  const fair = createFairCalls(limitCalls(maxCalls, timeoutSeconds));
  const prefix = cache.open();
  const forget = (): void => cache.close(prefix);
  const inFlight = new Map<string, Promise<Result>>();
  /** The last entry of each verified token: the runtime finds an object faster than a string. */
  const recent = new WeakMap<object, { target: PreparedTarget; entry: ExchangeEntry; result: Result; until: number }>();

  function start(key: ExchangeKey, admitted: AdmittedToken, target: PreparedTarget): Result | Promise<Result> {
    const attest = (result: Result): Result =>
      result instanceof Refused ? result.attest(evidenceOf(admitted)) : result;
    const turnAway = (): Result => refuseUnavailable(new ProviderError('too_many_calls'));
    const call = fair.run(nameCaller(admitted), () => exchange(key, admitted, target), turnAway);
    if (call === undefined) return attest(turnAway());
    const complete = key.target + key.subject;
    const flight = call.then(attest).finally(() => inFlight.delete(complete));
    inFlight.set(complete, flight);
    return flight;
  }

  return {
    prepare(target: ExchangeTarget): PreparedTarget {
      const fields = writeTarget(target);
      // JSON shows where it ends, so the token may follow.
      return { key: prefix + JSON.stringify(fields), fields };
    },
    /** Returns the new token, synchronously if it is cached, or a refusal. Throws `TypeError` for a value that is not access. */
    take(access: Access<unknown>, target: PreparedTarget): Result | Promise<Result> {
      const admitted = readAdmitted(access);
      const { token, credentials, now } = admitted;
      const ended = refuseEnded(admitted, { now, until: 'expiry' });
      if (ended !== undefined) return ended;
      const time = now();
      const last = recent.get(token.claims);
      const isLast = last?.target === target && time < last.until && last.entry.isCached;
      if (isLast && isFresh(last.entry, time)) return last.result;
      const key = { target: target.key, subject: credentials.token };
      const known = cache.get(key);
      if (known?.result !== undefined && isFresh(known, time)) {
        recent.set(token.claims, { target, entry: known, result: known.result, until: time + recentSeconds });
        return known.result;
      }
      const asked = inFlight.get(target.key + credentials.token);
      if (asked !== undefined) return asked;
      const isBound = bound !== 'allow' && Object.hasOwn(token.claims, 'cnf');
      if (token.claims.iss === issuer && !isBound) return start(key, admitted, target);
      const context = { why: isBound ? 'cnf' : 'issuer' };
      return new Refused('exchange_refused', { context }, evidenceOf(admitted));
    },
    /** Discards a token that an upstream has refused, at most once in 10 s. Returns true if `take` returns another one now. */
    discard(access: Access<unknown>, target: PreparedTarget, used: ExchangedToken): boolean {
      const admitted = readAdmitted(access);
      const key = { target: target.key, subject: admitted.credentials.token };
      const time = admitted.now();
      const known = cache.get(key);
      // Another request has discarded it before.
      if (known?.result !== used) return inFlight.has(key.target + key.subject) || isToken(known?.result);
      if (Math.abs(time - known.discardedAt) < discardSeconds) return false;
      cache.set(key, nameCaller(admitted), { result: undefined, until: time, steadyUntil: 0, discardedAt: time });
      return true;
    },
    /** Drops what is cached. Requests in flight go on. */
    forget,
    close(): void {
      close();
      forget();
    },
  };
}

/** Creates the function that requests a token, and caches what may be used again. */
function createCachedExchange(
  request: ReturnType<typeof createExchangeRequest>['request'],
  cache: ExchangeCache,
  onExchange: (outcome: ExchangeOutcome, seconds: number) => void,
) {
  return async (key: ExchangeKey, admitted: AdmittedToken, target: PreparedTarget): Promise<Result> => {
    const { revocations, now } = admitted;
    const { claims } = admitted.token;
    // The exchange may have been queued.
    const ended = refuseEnded(admitted, { now, until: 'expiry' });
    if (ended !== undefined) return ended;
    const startedAt = performance.now();
    let isRevoked = false;
    const release = revocations?.follow(claims, () => {
      // Without iat, only the issuer can tell if a cutoff means this token.
      if (revocations.refuseRevoked(claims) === undefined && revocations.doubtOf(claims) === undefined) return;
      isRevoked = true;
      cache.delete(key);
    });
    const result = await request(admitted, target).catch(refuseUnavailable);
    const outcome = isToken(result) ? 'ok' : result.reason === 'exchange_refused' ? 'refused' : 'unavailable';
    onExchange(outcome, (performance.now() - startedAt) / 1000);
    const time = now();
    const end = isToken(result) ? Math.min(result.expiresAt, claims.exp) : time;
    const until = outcome === 'refused' ? time + refusedSeconds : end - Math.min(maxMargin, (end - time) / 10);
    if (until > time && !isRevoked) {
      const discardedAt = cache.get(key)?.discardedAt ?? Number.NEGATIVE_INFINITY;
      const steadyUntil = steady() + until - time;
      cache.set(key, nameCaller(admitted), { result, until, steadyUntil, discardedAt, release });
    } else release?.();
    const late = refuseEnded(admitted, { now, until: 'expiry' });
    return late ?? (isRevoked ? new Refused('exchange_unavailable', { context: { why: 'revocation' } }) : result);
  };
}

/** Seconds until the cache is queried again, which evicts what is not used. */
const recentSeconds = 1;

/** Reports whether an entry has not ended by both clocks: a wall clock that was set back would prolong it. */
function isFresh({ until, steadyUntil }: CachedExchange, time: number): boolean {
  return time < until && steady() < steadyUntil;
}

function readAdmitted(access: Access<unknown>): AdmittedToken {
  const admitted = findAdmitted(access);
  if (admitted !== undefined) return admitted;
  throw new TypeError('exchange: pass the access that this copy of portcullis has granted, and not a copy of it');
}

/** Names the caller that a part of the cache and of the requests belongs to. */
function nameCaller({ token: { claims } }: AdmittedToken): string {
  const { iss, sub, client_id: client = claims['azp'] } = claims;
  return JSON.stringify(typeof sub === 'string' ? [iss, 'sub', sub] : [iss, 'client_id', client]);
}

function evidenceOf({ token: { claims, scopes, verifiedBy } }: AdmittedToken): Evidence {
  return { claims, kid: verifiedBy.kid, scopes };
}

function refuseUnavailable(thrown: unknown): Refused {
  const cause = toProviderError(thrown);
  return new Refused('exchange_unavailable', { context: { kind: cause.kind }, cause });
}
