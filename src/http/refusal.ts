import { AccessError, type Reason } from '../failures.ts';
import { type ChallengeSettings, formatChallenge } from './challenge.ts';
import { parseScheme, type Scheme } from './credentials.ts';
import type { ErrorBodyFormat } from './error-body.ts';
import type { ReadExternalUrl } from './external-url.ts';
import type { Connection, ResourceRequest } from './request.ts';

/** Where the protected resource metadata stands (RFC 9728 §3). */
export const metadataPath = '/.well-known/oauth-protected-resource';

/** How one resource server refuses. */
export interface RefusalSettings {
  readonly challenge: ChallengeSettings;
  readonly errorBody: ErrorBodyFormat;
  /** Statuses that differ from the table of reasons. */
  readonly statuses: ReadonlyMap<Reason, number>;
  readonly readExternalUrl: ReadExternalUrl;
  /** Makes the nonce that goes with `use_dpop_nonce`. */
  readonly issueNonce: () => string | undefined;
}

/** What is known of the request besides itself. */
export interface RefusalContext {
  /** The scopes that the route needs. Default: those that the error names. */
  readonly scopes?: readonly string[] | undefined;
  readonly connection?: Connection | undefined;
}

/** Turns any error into the one answer that the contract wants; what is no `AccessError` is `unexpected`. */
export type Refuse = (error: unknown, request: ResourceRequest, context?: RefusalContext) => Response;

/** Seconds after which a client may try again when keys or the replay store are unavailable. */
const retryAfterSeconds = 5;

/** The one place that writes a challenge or an error body. */
export function createRefuse(settings: RefusalSettings): Refuse {
  return (error, request, context = {}) => {
    const { reason, failure, scopes } = error instanceof AccessError ? error : new AccessError('unexpected');
    const status = settings.statuses.get(reason) ?? failure.status;
    const { contentType, body } = settings.errorBody({
      status,
      error: failure.error ?? 'unauthorized',
      description: failure.description,
    });
    const headers: Record<string, string> = { 'content-type': contentType, 'cache-control': 'no-store' };
    if (status === 401 || status === 403) {
      headers['www-authenticate'] = formatChallenge(settings.challenge, {
        failure,
        scheme: usedScheme(request),
        scopes: context.scopes ?? scopes ?? [],
        metadataUrl: metadataUrl(settings.readExternalUrl, request, context.connection),
      });
    }
    if (status === 503) headers['retry-after'] = String(retryAfterSeconds);
    if (failure.error === 'use_dpop_nonce') setNonce(headers, settings.issueNonce());
    return new Response(body, { status, headers });
  };
}

function setNonce(headers: Record<string, string>, nonce: string | undefined): void {
  if (nonce !== undefined) headers['dpop-nonce'] = nonce;
}

function usedScheme(request: ResourceRequest): Scheme | undefined {
  const value = request.headers.get('authorization') ?? '';
  return parseScheme(value.slice(0, Math.max(value.indexOf(' '), 0)));
}

/** Absent where the request's own URL is not fit to be repeated. */
function metadataUrl(
  readExternalUrl: ReadExternalUrl,
  request: ResourceRequest,
  connection: Connection | undefined,
): string | undefined {
  try {
    const { origin, prefix } = readExternalUrl(request, connection);
    return `${origin}${prefix}${metadataPath}`;
  } catch {
    return undefined;
  }
}
