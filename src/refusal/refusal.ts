import { LRUCache } from 'lru-cache';
import { AccessError, type Reason, type StepUp } from '../failures.ts';
import { parseAuthorizationScheme, type Scheme } from '../http/credentials.ts';
import type { ExternalUrl, ReadExternalUrl } from '../http/external-url.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import { namedScopes } from '../policy/checked-policy.ts';
import type { Policy } from '../policy/policy.ts';
import { type ChallengeFacts, type ChallengeSettings, formatChallenge } from './challenge.ts';
import type { ErrorBodyFormat } from './error-body.ts';

/** Where the protected resource metadata stands (RFC 9728 §3). */
export const metadataPath = '/.well-known/oauth-protected-resource';

/** How one resource server refuses. */
export interface RefusalSettings {
  readonly challenge: ChallengeSettings;
  /** Called once for each answer that differs, and kept. */
  readonly errorBody: ErrorBodyFormat;
  /** Statuses that differ from the table of reasons. */
  readonly statuses: ReadonlyMap<Reason, number>;
  readonly readExternalUrl: ReadExternalUrl;
  /** Makes the nonce that goes with `use_dpop_nonce`. */
  readonly issueNonce: () => string | undefined;
}

/** What is known of the request besides itself. */
export interface RefusalContext {
  /** What the route asks for: the challenge names its scopes, besides those that the error names. */
  readonly policy?: Policy<unknown> | undefined;
  readonly connection?: Connection | undefined;
}

/** A refused request's answer, for any way of sending it. */
export interface Refusal {
  readonly reason: Reason;
  readonly status: number;
  /** By names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Turns any error into the one answer that the contract wants; what is no `AccessError` is `unexpected`. */
export type DescribeRefusal = (error: unknown, request: ResourceRequest, context?: RefusalContext) => Refusal;

/** Seconds after which a client may try again when keys or the replay store are unavailable. */
const retryAfterSeconds = 5;
/** Refusals that are kept as they were written: few differ, unless somebody makes up hosts. */
const keptRefusals = 256;

/** The one place that writes a challenge or an error body. */
export function createDescribeRefusal(settings: RefusalSettings): DescribeRefusal {
  const kept = new LRUCache<string, Refusal>({ max: keptRefusals });
  const last = new Map<Reason, Written>();

  const write = (refused: AccessError, cause: Cause): Refusal => {
    const { reason, failure, stepUp } = refused;
    const { scheme, url } = cause;
    const metadataUrl = url === undefined ? undefined : `${url.origin}${url.prefix}${metadataPath}`;
    const scopes = [...new Set([...namedScopes(cause.policy), ...(refused.scopes ?? [])])];
    const key = [reason, scheme, metadataUrl, ...scopes, JSON.stringify(stepUp)].join(' ');
    const known = kept.get(key);
    if (known !== undefined) return known;
    const refusal = writeRefusal(settings, { reason, failure, scheme, scopes, stepUp, metadataUrl });
    kept.set(key, refusal);
    return refusal;
  };

  return (error, request, { policy, connection } = {}) => {
    const refused = error instanceof AccessError ? error : new AccessError('unexpected');
    const { reason, scopes, stepUp } = refused;
    const scheme = usedScheme(request);
    const url = settings.readExternalUrl(request, connection);
    // One that is not fit to be repeated is left out.
    const told = url instanceof AccessError ? undefined : url;
    const cause: Cause = { policy, scopes, stepUp, scheme, url: told };
    const before = last.get(reason);
    const refusal = before !== undefined && isSameCause(before.cause, cause) ? before.refusal : write(refused, cause);
    if (refusal !== before?.refusal) last.set(reason, { cause, refusal });
    if (refused.failure.error !== 'use_dpop_nonce') return refusal;
    const nonce = settings.issueNonce();
    return nonce === undefined ? refusal : { ...refusal, headers: { ...refusal.headers, 'dpop-nonce': nonce } };
  };
}

/** What a refusal is written from, besides its reason; compared as it is, which costs less than to make a key of it. */
interface Cause {
  readonly policy: Policy<unknown> | undefined;
  readonly scopes: readonly string[] | undefined;
  readonly stepUp: StepUp | undefined;
  readonly scheme: Scheme | undefined;
  /** Absent where the request's own URL is not fit to be repeated. */
  readonly url: ExternalUrl | undefined;
}

interface Written {
  readonly cause: Cause;
  readonly refusal: Refusal;
}

function isSameCause(a: Cause, b: Cause): boolean {
  return (
    a.policy === b.policy &&
    a.scopes === b.scopes &&
    a.stepUp === b.stepUp &&
    a.scheme === b.scheme &&
    a.url?.origin === b.url?.origin &&
    a.url?.prefix === b.url?.prefix
  );
}

/** All that an answer depends on, but for a nonce. */
interface RefusalFacts extends ChallengeFacts {
  readonly reason: Reason;
}

function writeRefusal(settings: RefusalSettings, facts: RefusalFacts): Refusal {
  const { reason, failure } = facts;
  const status = settings.statuses.get(reason) ?? failure.status;
  const { contentType, body } = settings.errorBody({
    status,
    error: failure.error ?? 'unauthorized',
    description: failure.description,
  });
  const headers: Record<string, string> = { 'content-type': contentType, 'cache-control': 'no-store' };
  // RFC 6750 §3: a challenge asks for another token, and no token would change a denial.
  if ((status === 401 || status === 403) && failure.error !== 'access_denied') {
    headers['www-authenticate'] = formatChallenge(settings.challenge, facts);
  }
  if (status === 503) headers['retry-after'] = String(retryAfterSeconds);
  return { reason, status, headers, body };
}

function usedScheme(request: ResourceRequest): Scheme | undefined {
  const value = request.headers.get('authorization') ?? '';
  return parseAuthorizationScheme(value.slice(0, Math.max(value.indexOf(' '), 0)));
}
