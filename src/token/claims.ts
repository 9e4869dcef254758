import { type Check, type Comparison, createCheck } from '../check.ts';
import { isJsonObject, type JsonObject } from '../jose/json.ts';
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

/** Claims, and what they are held against. */
export interface ClaimFacts {
  readonly claims: JsonObject;
  readonly rules: ClaimRules;
  /** Seconds since the epoch. */
  readonly now: number;
}

/**
 * The checks, in the order of docs/behaviour.md §3: audience and client, times, subject, scope, the form of what handlers are given, kind. A
 * comparison with a missing time fails closed.
 */
export const claimChecks: readonly Check<ClaimFacts>[] = [
  createCheck('aud', 'invalid_audience', ({ claims: { aud }, rules }) => isForUs(aud, rules), {
    compare: ({ claims: { aud }, rules }) => ({ expected: rules.audiences, received: aud }),
  }),
  createCheck(
    'client',
    'unaccepted_client',
    ({ claims, rules: { clientIds } }) => clientIds === undefined || isAcceptedClient(claims, clientIds),
    // Which client it was is an identity, and told only if asked for.
    { compare: ({ rules: { clientIds } }) => (clientIds === undefined ? {} : { expected: clientIds }) },
  ),
  createCheck('exp_present', 'missing_exp', ({ claims: { exp } }) => exp !== undefined, { group: 'exp' }),
  createCheck('exp_form', 'malformed_exp', ({ claims: { exp } }) => isTime(exp), { group: 'exp' }),
  // `exp` equal to now is expired (RFC 7519 §4.1.4).
  createCheck('exp', 'expired', ({ claims: { exp }, rules, now }) => isTime(exp) && now < exp + rules.expTolerance, {
    compare: ({ claims: { exp }, rules, now }) => ({
      received: exp,
      time: { now, past: rules.expTolerance, ahead: Number.POSITIVE_INFINITY },
    }),
  }),
  createCheck('nbf_form', 'malformed_nbf', ({ claims: { nbf } }) => nbf === undefined || isTime(nbf), { group: 'nbf' }),
  createCheck(
    'nbf',
    'not_yet_valid',
    ({ claims: { nbf }, rules, now }) => nbf === undefined || (isTime(nbf) && nbf <= now + rules.nbfTolerance),
    { compare: ({ claims: { nbf }, rules, now }) => compareStart(nbf, rules, now) },
  ),
  createCheck('iat_present', 'missing_iat', ({ claims: { iat } }) => iat !== undefined, { group: 'iat' }),
  createCheck('iat_form', 'malformed_iat', ({ claims: { iat } }) => isTime(iat), { group: 'iat' }),
  createCheck(
    'iat',
    'issued_in_future',
    ({ claims: { iat }, rules, now }) => isTime(iat) && iat <= now + rules.nbfTolerance,
    { compare: ({ claims: { iat }, rules, now }) => compareStart(iat, rules, now) },
  ),
  createCheck(
    'sub',
    'malformed_sub',
    ({ claims: { sub }, rules }) => typeof sub === 'string' || (sub === undefined && rules.subject === 'optional'),
  ),
  createCheck('scope', 'malformed_scope', ({ claims, rules }) => isScope(claims, rules.scopeClaim)),
  createCheck('kind', 'not_an_access_token', ({ claims }) => !isOtherKind(claims)),
];

const timeIds: ReadonlySet<string> = new Set(['exp', 'nbf', 'iat']);

/** The checks whose outcome changes while time passes. */
export const timeChecks: readonly Check<ClaimFacts>[] = claimChecks.filter(({ id }) => timeIds.has(id));

const hashClaims: readonly string[] = ['at_hash', 'c_hash', 's_hash'];
const otherUses: ReadonlySet<unknown> = new Set(['id', 'refresh']);
const otherTypes: ReadonlySet<unknown> = new Set(['ID', 'Refresh', 'Logout']);
const uriStart = /^[a-z][a-z\d+.-]*:/i;

/** For a time that must not lie ahead. */
function compareStart(received: unknown, { nbfTolerance }: ClaimRules, now: number): Comparison {
  return { received, time: { now, past: Number.POSITIVE_INFINITY, ahead: nbfTolerance } };
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
