import { LRUCache } from 'lru-cache';
import { attempt } from '../attempt.ts';
import { AccessError, type Reason } from '../failures.ts';
import { readScheme } from '../http/credentials.ts';
import type { ReadExternalUrl } from '../http/external-url.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import { namedScopes } from '../policy/checked-policy.ts';
import type { Policy } from '../policy/policy.ts';
import { Refused } from '../refused.ts';
import {
  type ChallengeFacts,
  type ChallengeSettings,
  findMetadataLink,
  formatChallenge,
  metadataPath,
} from './challenge.ts';
import { type ErrorBodyFormat, errorBodyFormats } from './error-body.ts';

export interface RefusalSettings {
  readonly challenge: ChallengeSettings;
  /** Called once for each different response; the result is cached. */
  readonly errorBody: ErrorBodyFormat;
  /** Status of every refusal with `insufficient_scope`. */
  readonly insufficientScopeStatus: 401 | 403;
  readonly readExternalUrl: ReadExternalUrl;
  /** Makes the nonce that goes with a refusal; `undefined` for one that needs none. */
  readonly issueNonce: (refusal: { readonly status: number; readonly error: string | null }) => string | undefined;
}

/** Facts about the request in addition to the request itself. */
export interface RefusalContext {
  /** Policy of the route: the challenge names its scopes, in addition to those that the error names. */
  readonly policy?: Policy<unknown> | undefined;
  /** Transport of the request. */
  readonly connection?: Connection | undefined;
  /** URL of the metadata for this request's challenge. Default: the URL that the server links to; none if nothing serves it. */
  readonly metadataUrl?: string | undefined;
  /** Realm of the challenge, such as the name of a tenant. Default: the audiences of the server. */
  readonly realm?: string | undefined;
}

/** Response to a refused request, in a transport-independent form. */
export interface Refusal {
  /** Reason, for the log: clients do not see it. */
  readonly reason: Reason;
  /** HTTP status. */
  readonly status: number;
  /** Headers, with names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Text of the body, in the form of `errorBody`. */
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

  const describeRefusal: DescribeRefusal = (error, request, context = {}) => {
    const refused = error instanceof AccessError ? error : new Refused('unexpected');
    const { reason, failure, stepUp } = refused;
    const { policy, realm = settings.challenge.realm } = context;
    const scheme = readScheme(request.headers.get('authorization') ?? '');
    const link = findMetadataLink(describeRefusal);
    const metadataUrl =
      context.metadataUrl ?? (link === 'request' ? findMetadataUrl(settings, request, context) : link?.url);
    const named = namedScopes(policy);
    const scopes = refused.scopes === undefined ? named : [...new Set([...named, ...refused.scopes])];
    // A template costs a third of JSON, and only few refusals have a step-up.
    const written = stepUp === undefined ? '' : JSON.stringify(stepUp);
    const key = `${reason}\n${scheme}\n${metadataUrl}\n${realm}\n${written}\n${scopes.join(' ')}`;
    const known = kept.get(key);
    const refusal = known ?? writeRefusal(settings, { reason, failure, scheme, scopes, stepUp, metadataUrl, realm });
    if (known === undefined) kept.set(key, refusal);
    const nonce = settings.issueNonce({ status: refusal.status, error: failure.error });
    return nonce === undefined ? refusal : { ...refusal, headers: { ...refusal.headers, 'dpop-nonce': nonce } };
  };
  return describeRefusal;
}

/** The metadata under the URL of the request. A URL that is not fit to be repeated is left out. */
function findMetadataUrl(
  { readExternalUrl }: RefusalSettings,
  request: ResourceRequest,
  { connection }: RefusalContext,
): string | undefined {
  const url = readExternalUrl(request, connection);
  return url instanceof Refused ? undefined : `${url.origin}${url.prefix}${metadataPath}`;
}

/** All inputs of a response except a nonce. */
interface RefusalFacts extends ChallengeFacts {
  readonly reason: Reason;
  readonly realm: string;
}

function writeRefusal(settings: RefusalSettings, facts: RefusalFacts): Refusal {
  const { reason, failure } = facts;
  const status = failure.error === 'insufficient_scope' ? settings.insufficientScopeStatus : failure.status;
  const report = { status, error: failure.error ?? 'unauthorized', description: failure.description };
  const { contentType, body } = attempt(settings.errorBody, report) ?? errorBodyFormats.detail(report);
  const headers: Record<string, string> = { 'content-type': contentType, 'cache-control': 'no-store' };
  // RFC 6750 §3: a challenge requests another token, and no token would change a denial.
  if ((status === 401 || status === 403) && failure.error !== 'access_denied') {
    headers['www-authenticate'] = formatChallenge({ ...settings.challenge, realm: facts.realm }, facts);
  }
  if (status === 503) headers['retry-after'] = String(retryAfterSeconds);
  return { reason, status, headers, body };
}
