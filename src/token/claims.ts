import type { Reason } from '../failures.ts';
import type { JsonObject } from '../jose/json.ts';
import { isTime } from '../jose/numeric-date.ts';
import { findClaim } from './claim-path.ts';

/**
 * The claims of a verified access token, as a server with `subject: 'optional'` hands them over. Members that are named
 * here were checked; every other one is of unknown type.
 */
export interface RegisteredClaims extends JsonObject {
  /** The issuer, one that is trusted here. */
  readonly iss: string;
  /** Whom the token speaks for: a user, or the client itself. Unique at its issuer only. */
  readonly sub?: string;
  /** Whom the token is for. Absent only if `clientIds` stands in for an audience, or an introspection endpoint left it out. */
  readonly aud?: string | readonly string[];
  /** When the token expires, in seconds since the epoch. */
  readonly exp: number;
  /** When it was issued, in seconds since the epoch. Always there in a JWT; an introspection endpoint may leave it out (RFC 7662 §2.2). */
  readonly iat?: number;
  /** The client that the token was issued to (RFC 9068 §2.2). Some providers name it in `azp` or `cid`. */
  readonly client_id?: string;
  /** What tells this token from every other one of its issuer. */
  readonly jti?: string;
  /** As the issuer wrote it. `access.scopes` has the elements. A list only if `scopeClaim` is `scope`. */
  readonly scope?: string | readonly string[];
}

/** The claims of a verified access token. Members that are named were checked; every other one is of unknown type. */
export interface Claims extends RegisteredClaims {
  /** Whom the token speaks for: a user, or the client itself. Unique at its issuer only. */
  readonly sub: string;
}

/** What the claims are held against. */
export interface ClaimRules {
  /** Any one of these must be in `aud`. Empty only with `clientIds`, and then there must be no `aud`. */
  readonly audiences: ReadonlySet<string>;
  /** `client_id`, or `azp` if that is absent, must be one of these. Default: any client will do. */
  readonly clientIds?: ReadonlySet<string> | undefined;
  /** Name of the claim with the scopes, in place of `scope`: a text, or a list of texts that are not split. */
  readonly scopeClaim?: string | undefined;
  /** How far clocks may differ, in seconds, for `exp`. */
  readonly expTolerance: number;
  /** How far clocks may differ, in seconds, for `nbf` and `iat`. */
  readonly nbfTolerance: number;
  readonly subject: 'required' | 'optional';
}

/** One check of one claim: verification stops at the first that fails, an explanation runs them all. */
export interface ClaimCheck {
  readonly claim: string;
  /** Why the token is refused when the check fails. */
  readonly reason: Reason;
  /** `now` is in seconds since the epoch. */
  readonly passes: (claims: JsonObject, rules: ClaimRules, now: number) => boolean;
}

function isForUs(aud: unknown, { audiences, clientIds }: ClaimRules): boolean {
  // The client says whom the token is for only as long as the token itself says nothing else.
  if (audiences.size === 0 && clientIds !== undefined) return aud === undefined;
  return hasAudience(aud, audiences);
}

/** Whether one of these is in `aud`, and `aud` has the form that RFC 7519 §4.1.3 demands. */
export function hasAudience(aud: unknown, audiences: ReadonlySet<string>): boolean {
  if (typeof aud === 'string') return audiences.has(aud);
  if (!Array.isArray(aud)) return false;
  let found = false;
  for (const item of aud) {
    // RFC 7519 §4.1.3: each element is a string.
    if (typeof item !== 'string') return false;
    found ||= audiences.has(item);
  }
  return found;
}

function isAcceptedClient({ client_id: clientId, azp }: JsonObject, clientIds: ReadonlySet<string>): boolean {
  const client = clientId === undefined ? azp : clientId;
  return typeof client === 'string' && clientIds.has(client);
}

function isScope(claims: JsonObject, scopeClaim: string | undefined): boolean {
  const value = scopeClaim === undefined ? claims['scope'] : findClaim(claims, scopeClaim);
  if (value === undefined || typeof value === 'string') return true;
  // RFC 9068 §2.2.3 knows a text only. A list is for issuers that are known to write one.
  return scopeClaim !== undefined && Array.isArray(value) && value.every((each) => typeof each === 'string');
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || typeof value === 'string';
}

/**
 * The checks of contract order: audience and client, times, subject, scope, and the form of what handlers are given. A
 * comparison with a missing time fails closed.
 */
export const claimChecks: readonly ClaimCheck[] = [
  { claim: 'aud', reason: 'invalid_audience', passes: ({ aud }, rules) => isForUs(aud, rules) },
  {
    claim: 'client_id',
    reason: 'unaccepted_client',
    passes: (claims, { clientIds }) => clientIds === undefined || isAcceptedClient(claims, clientIds),
  },
  { claim: 'exp', reason: 'missing_exp', passes: ({ exp }) => exp !== undefined },
  { claim: 'exp', reason: 'malformed_exp', passes: ({ exp }) => isTime(exp) },
  // `exp` equal to now is expired (RFC 7519 §4.1.4).
  { claim: 'exp', reason: 'expired', passes: ({ exp }, rules, now) => isTime(exp) && now < exp + rules.expTolerance },
  { claim: 'nbf', reason: 'malformed_nbf', passes: ({ nbf }) => nbf === undefined || isTime(nbf) },
  {
    claim: 'nbf',
    reason: 'not_yet_valid',
    passes: ({ nbf }, rules, now) => nbf === undefined || (isTime(nbf) && nbf <= now + rules.nbfTolerance),
  },
  { claim: 'iat', reason: 'missing_iat', passes: ({ iat }) => iat !== undefined },
  { claim: 'iat', reason: 'malformed_iat', passes: ({ iat }) => isTime(iat) },
  {
    claim: 'iat',
    reason: 'issued_in_future',
    passes: ({ iat }, rules, now) => isTime(iat) && iat <= now + rules.nbfTolerance,
  },
  {
    claim: 'sub',
    reason: 'malformed_sub',
    passes: ({ sub }, rules) => typeof sub === 'string' || (sub === undefined && rules.subject === 'optional'),
  },
  { claim: 'scope', reason: 'malformed_scope', passes: (claims, { scopeClaim }) => isScope(claims, scopeClaim) },
  { claim: 'client_id', reason: 'malformed_client_id', passes: (claims) => isTextOrAbsent(claims['client_id']) },
  // A token whose identifier is no text could not be denied by it either.
  { claim: 'jti', reason: 'malformed_jti', passes: ({ jti }) => isTextOrAbsent(jti) },
];

const timeReasons: ReadonlySet<Reason> = new Set(['expired', 'not_yet_valid', 'issued_in_future']);

/** The checks whose outcome changes while time passes. */
export const timeChecks: readonly ClaimCheck[] = claimChecks.filter(({ reason }) => timeReasons.has(reason));
