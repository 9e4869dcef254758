import { type Check, createCheck } from '../check.ts';
import { isJsonObject, type JsonObject } from '../jose/json.ts';
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

/** Claims, and what they are held against. */
export interface ClaimFacts {
  readonly claims: JsonObject;
  readonly rules: ClaimRules;
  /** Seconds since the epoch. */
  readonly now: number;
}

/** The checks of contract order: audience, times, subject, scope, kind. A comparison with a missing time fails closed. */
export const claimChecks: readonly Check<ClaimFacts>[] = [
  createCheck('aud', 'invalid_audience', ({ claims: { aud }, rules }) => hasAudience(aud, rules.audiences)),
  createCheck('exp_present', 'missing_exp', ({ claims: { exp } }) => exp !== undefined, { group: 'exp' }),
  createCheck('exp_form', 'malformed_exp', ({ claims: { exp } }) => isTime(exp), { group: 'exp' }),
  // `exp` equal to now is expired (RFC 7519 §4.1.4).
  createCheck('exp', 'expired', ({ claims: { exp }, rules, now }) => isTime(exp) && now < exp + rules.expTolerance),
  createCheck('nbf_form', 'malformed_nbf', ({ claims: { nbf } }) => nbf === undefined || isTime(nbf), { group: 'nbf' }),
  createCheck(
    'nbf',
    'not_yet_valid',
    ({ claims: { nbf }, rules, now }) => nbf === undefined || (isTime(nbf) && nbf <= now + rules.nbfTolerance),
  ),
  createCheck('iat_present', 'missing_iat', ({ claims: { iat } }) => iat !== undefined, { group: 'iat' }),
  createCheck('iat_form', 'malformed_iat', ({ claims: { iat } }) => isTime(iat), { group: 'iat' }),
  createCheck(
    'iat',
    'issued_in_future',
    ({ claims: { iat }, rules, now }) => isTime(iat) && iat <= now + rules.nbfTolerance,
  ),
  createCheck(
    'sub',
    'malformed_sub',
    ({ claims: { sub }, rules }) => typeof sub === 'string' || (sub === undefined && rules.subject === 'optional'),
  ),
  createCheck('scope', 'malformed_scope', ({ claims: { scope } }) => scope === undefined || typeof scope === 'string'),
  createCheck('kind', 'not_an_access_token', ({ claims }) => !isOtherKind(claims)),
];

const timeIds: ReadonlySet<string> = new Set(['exp', 'nbf', 'iat']);

/** The checks whose outcome changes while time passes. */
export const timeChecks: readonly Check<ClaimFacts>[] = claimChecks.filter(({ id }) => timeIds.has(id));

const hashClaims: readonly string[] = ['at_hash', 'c_hash', 's_hash'];
const otherUses: ReadonlySet<unknown> = new Set(['id', 'refresh']);
const otherTypes: ReadonlySet<unknown> = new Set(['ID', 'Refresh', 'Logout']);
const uriStart = /^[a-z][a-z\d+.-]*:/i;

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

/**
 * Whether a token says that it is an ID, refresh, logout or security-event token. Their hashes are of OpenID Connect Core
 * §3.3.2.11; `token_use` is what Cognito writes, `typ` what Keycloak writes.
 */
function isOtherKind(claims: JsonObject): boolean {
  for (const name of hashClaims) if (Object.hasOwn(claims, name)) return true;
  const { token_use: use, typ, events } = claims;
  return otherUses.has(use) || otherTypes.has(typ) || isEvents(events);
}

/** RFC 8417 §2.2: an object whose members are named by URIs. */
function isEvents(events: unknown): boolean {
  if (!isJsonObject(events)) return false;
  const names = Object.keys(events);
  return names.length > 0 && names.every((name) => uriStart.test(name));
}
