import { LRUCache } from 'lru-cache';
import { attempt } from '../attempt.ts';
import { AccessError, type Reason, type StepUp } from '../failures.ts';
import { parseAuthorizationScheme, type Scheme } from '../http/credentials.ts';
import type { ExternalUrl, ReadExternalUrl } from '../http/external-url.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import { namedScopes } from '../policy/checked-policy.ts';
import type { Policy } from '../policy/policy.ts';
import { Refused } from '../refused.ts';
import {
  type ChallengeFacts,
  type ChallengeSettings,
  formatChallenge,
  type MetadataLink,
  metadataPath,
  onMetadataLink,
} from './challenge.ts';
import { type ErrorBodyFormat, errorBodyFormats } from './error-body.ts';

export interface RefusalSettings {
  readonly challenge: ChallengeSettings;
  /** Called once for each different response; the result is cached. */
  readonly errorBody: ErrorBodyFormat;
  readonly statuses: ReadonlyMap<Reason, number>;
  readonly readExternalUrl: ReadExternalUrl;
  /** Makes the nonce that goes with a refusal; `undefined` for one that needs none. */
  readonly issueNonce: (refusal: { readonly status: number; readonly error: string | null }) => string | undefined;
}

/** Facts about the request in addition to the request itself. */
export interface RefusalContext {
  /** Policy of the route: the challenge names its scopes, in addition to those that the error names. */
  readonly policy?: Policy<unknown> | undefined;
  readonly connection?: Connection | undefined;
  /** URL of the metadata for this request's challenge. Default: the URL that the server links to; none if nothing serves it. */
  readonly metadataUrl?: string | undefined;
  /** Realm of the challenge, such as the name of a tenant. Default: the audiences of the server. */
  readonly realm?: string | undefined;
}

/** Response to a refused request, in a transport-independent form. */
export interface Refusal {
  readonly reason: Reason;
  readonly status: number;
  /** Headers, with names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Converts any error to its one response; any other value is `unexpected`. */
export type DescribeRefusal = (error: unknown, request: ResourceRequest, context?: RefusalContext) => Refusal;

/** Seconds after which a client may try again when keys or the replay store are unavailable. */
const retryAfterSeconds = 5;
/** Maximum number of cached refusals: few differ, unless a client makes up hosts. */
const keptRefusals = 256;

/** The one place that writes a challenge or an error body. */
export function createDescribeRefusal(settings: RefusalSettings): DescribeRefusal {
  const kept = new LRUCache<string, Refusal>({ max: keptRefusals });
  const last = new Map<Reason, Written>();
  let link: MetadataLink | undefined;

  const write = (refused: AccessError, cause: Cause): Refusal => {
    const { reason, failure, stepUp } = refused;
    const { scheme, url } = cause;
    const metadataUrl = typeof url === 'object' ? `${url.origin}${url.prefix}${metadataPath}` : url;
    const scopes = [...new Set([...namedScopes(cause.policy), ...(refused.scopes ?? [])])];
    const key = [reason, scheme, metadataUrl, ...scopes, JSON.stringify([stepUp, cause.realm])].join(' ');
    const known = kept.get(key);
    if (known !== undefined) return known;
    const { realm = settings.challenge.realm } = cause;
    const challenge = { ...settings.challenge, realm };
    const refusal = writeRefusal({ ...settings, challenge }, { reason, failure, scheme, scopes, stepUp, metadataUrl });
    kept.set(key, refusal);
    return refusal;
  };

  const describeRefusal: DescribeRefusal = (error, request, { policy, connection, metadataUrl, realm } = {}) => {
    const refused = error instanceof AccessError ? error : new Refused('unexpected');
    const { reason, scopes, stepUp } = refused;
    const scheme = usedScheme(request);
    const url = metadataUrl ?? (link === 'request' ? readOwnUrl(settings, request, connection) : link?.url);
    const cause: Cause = { policy, scopes, stepUp, scheme, url, realm };
    const before = last.get(reason);
    const refusal = before !== undefined && isSameCause(before.cause, cause) ? before.refusal : write(refused, cause);
    if (refusal !== before?.refusal) last.set(reason, { cause, refusal });
    const nonce = settings.issueNonce({ status: refusal.status, error: refused.failure.error });
    return nonce === undefined ? refusal : { ...refusal, headers: { ...refusal.headers, 'dpop-nonce': nonce } };
  };
  onMetadataLink(describeRefusal, (given) => {
    link = given;
  });
  return describeRefusal;
}

/** A URL that is not fit to be repeated is left out. */
function readOwnUrl(
  { readExternalUrl }: RefusalSettings,
  request: ResourceRequest,
  connection: Connection | undefined,
): ExternalUrl | undefined {
  const url = readExternalUrl(request, connection);
  return url instanceof Refused ? undefined : url;
}

/** Inputs of a refusal except its reason; compared directly, which costs less than to build a key. */
interface Cause {
  readonly policy: Policy<unknown> | undefined;
  readonly scopes: readonly string[] | undefined;
  readonly stepUp: StepUp | undefined;
  readonly scheme: Scheme | undefined;
  readonly url: ExternalUrl | string | undefined;
  readonly realm: string | undefined;
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
    a.realm === b.realm &&
    isSameUrl(a.url, b.url)
  );
}

function isSameUrl(a: Cause['url'], b: Cause['url']): boolean {
  if (a === b) return true;
  return typeof a === 'object' && typeof b === 'object' && a.origin === b.origin && a.prefix === b.prefix;
}

/** All inputs of a response except a nonce. */
interface RefusalFacts extends ChallengeFacts {
  readonly reason: Reason;
}

function writeRefusal(settings: RefusalSettings, facts: RefusalFacts): Refusal {
  const { reason, failure } = facts;
  const status = settings.statuses.get(reason) ?? failure.status;
  const report = { status, error: failure.error ?? 'unauthorized', description: failure.description };
  const { contentType, body } = attempt(settings.errorBody, report) ?? errorBodyFormats.detail(report);
  const headers: Record<string, string> = { 'content-type': contentType, 'cache-control': 'no-store' };
  // RFC 6750 §3: a challenge requests another token, and no token would change a denial.
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
