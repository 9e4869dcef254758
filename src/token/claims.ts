import type { Reason } from '../failures.ts';
import type { JsonObject } from '../jose/json.ts';
import { isTime } from '../jose/numeric-date.ts';

/** The claims of a verified access token; every member is still of unknown type, but for those that were checked. */
export interface Claims extends JsonObject {
  readonly iss: string;
  /** Seconds since the epoch. */
  readonly exp: number;
  /** Seconds since the epoch. Always there in a JWT; an introspection endpoint may leave it out (RFC 7662 §2.2). */
  readonly iat?: number;
  readonly scope?: string;
}

/** What the claims are held against. */
export interface ClaimRules {
  /** Any one of these must be in `aud`. */
  readonly audiences: ReadonlySet<string>;
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

function hasAudience(aud: unknown, audiences: ReadonlySet<string>): boolean {
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

/** The checks of contract order: audience, times, subject, scope. A comparison with a missing time fails closed. */
export const claimChecks: readonly ClaimCheck[] = [
  { claim: 'aud', reason: 'invalid_audience', passes: ({ aud }, rules) => hasAudience(aud, rules.audiences) },
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
  {
    claim: 'scope',
    reason: 'malformed_scope',
    passes: ({ scope }) => scope === undefined || typeof scope === 'string',
  },
];

const timeReasons: ReadonlySet<Reason> = new Set(['expired', 'not_yet_valid', 'issued_in_future']);

/** The checks whose outcome changes while time passes. */
export const timeChecks: readonly ClaimCheck[] = claimChecks.filter(({ reason }) => timeReasons.has(reason));
