import { type Check, createCheck } from '../checks.ts';
import type { Scheme } from '../http/credentials.ts';
import { isJsonObject, isTime, type JsonObject } from '../jose/json.ts';
import { type Comparison, Refused } from '../refused.ts';
import { findClaim, readClient } from './grants.ts';

/**
 * The claims of a verified access token, as a server with `subject: 'optional'` hands them over. Members that are named
 * here were checked; every other one is of unknown type.
 */
export interface RegisteredClaims extends JsonObject {
  /** The issuer, one that is trusted here. */
  readonly iss: string;
  /** Subject of the token: a user, or the client itself. Unique only at its issuer. */
  readonly sub?: string;
  /** Audience. Absent only if `clientIds` replaces an audience, or an introspection endpoint left it out. */
  readonly aud?: string | readonly string[];
  /** Expiry, in seconds since the epoch. */
  readonly exp: number;
  /** Time of issue, in seconds since the epoch. Only an introspection endpoint may omit it (RFC 7662 §2.2). */
  readonly iat?: number;
  /** The client that the token was issued to (RFC 9068 §2.2). Some providers name it in `azp` or `cid`. */
  readonly client_id?: string;
  /** Identifier of the token, unique at its issuer. */
  readonly jti?: string;
  /** Scopes in the issuer's form. `access.scopes` has the elements. An array only if `scopeClaim` is `scope`. */
  readonly scope?: string | readonly string[];
}

/** The claims of a verified access token. Members that are named were checked; every other one is of unknown type. */
export interface Claims extends RegisteredClaims {
  /** Subject of the token: a user, or the client itself. Unique only at its issuer. */
  readonly sub: string;
}

export interface ClaimRules {
  /** Any one of these must be in `aud`. Empty only with `clientIds` or `isUnchecked`, and then `aud` must be absent. */
  readonly audiences: ReadonlySet<string>;
  /** The client must be one of these. Default: any client will do. */
  readonly clientIds?: ReadonlySet<string> | undefined;
  /** Name of the claim with the client. Default: `client_id`, or `azp` if that is absent. */
  readonly clientIdClaim?: string | undefined;
  /** True if no claim says whom the tokens are for: a token with `aud`, or with the claim of the client, is refused. */
  readonly isUnchecked?: boolean | undefined;
  /** Name of the claim with the scopes, instead of `scope`: a string, or an array of strings that are not split. */
  readonly scopeClaim?: string | undefined;
  /** Clock tolerance for `exp`, in seconds. */
  readonly expTolerance: number;
  /** Clock tolerance for `nbf` and `iat`, in seconds. */
  readonly nbfTolerance: number;
  readonly subject: 'required' | 'optional';
}

export interface ClaimFacts {
  readonly claims: JsonObject;
  readonly rules: ClaimRules;
  /** Seconds since the epoch. */
  readonly now: number;
}

/** The checks, in the order of docs/behaviour.md §3. A comparison with a missing time fails closed. */
export const claimChecks: readonly Check<ClaimFacts>[] = [
  createCheck('aud', ({ claims: { aud }, rules }) => isForUs(aud, rules), {
    compare: ({ claims: { aud }, rules }) => ({ expected: rules.audiences, received: aud }),
  }),
  // The client's name is an identity, and is logged only on request.
  createCheck('client', ({ claims, rules }) => isAcceptedClient(claims, rules), {
    compare: ({ rules: { clientIds } }) => ({ expected: clientIds }),
  }),
  createCheck('exp_present', ({ claims: { exp } }) => exp !== undefined),
  createCheck('exp_form', ({ claims: { exp } }) => isTime(exp)),
  // `exp` equal to now is expired (RFC 7519 §4.1.4).
  createCheck('exp', ({ claims: { exp }, rules, now }) => isTime(exp) && now < exp + rules.expTolerance, {
    compare: ({ claims: { exp }, rules, now }) => ({
      received: exp,
      time: { now, past: rules.expTolerance, ahead: Number.POSITIVE_INFINITY },
    }),
  }),
  createCheck('nbf_form', ({ claims: { nbf } }) => nbf === undefined || isTime(nbf)),
  createCheck(
    'nbf',
    ({ claims: { nbf }, rules, now }) => nbf === undefined || (isTime(nbf) && nbf <= now + rules.nbfTolerance),
    { compare: ({ claims: { nbf }, rules, now }) => compareStart(nbf, rules, now) },
  ),
  createCheck('iat_present', ({ claims: { iat } }) => iat !== undefined),
  createCheck('iat_form', ({ claims: { iat } }) => isTime(iat)),
  createCheck('iat', ({ claims: { iat }, rules, now }) => isTime(iat) && iat <= now + rules.nbfTolerance, {
    compare: ({ claims: { iat }, rules, now }) => compareStart(iat, rules, now),
  }),
  createCheck('sub', ({ claims: { sub }, rules }) =>
    sub === undefined || sub === null ? rules.subject === 'optional' : typeof sub === 'string' && sub !== '',
  ),
  createCheck('scope', ({ claims, rules }) => isScope(claims, rules.scopeClaim)),
  createCheck('actor_form', ({ claims }) => isActorChain(claims)),
  createCheck('kind', ({ claims }) => !isOtherKind(claims)),
];

/** Returns verified claims for handlers and headers. No subject is a claim that is absent, even if the token has `null`. */
export function readRegistered(claims: JsonObject): RegisteredClaims {
  if (claims['sub'] !== null) return claims as RegisteredClaims; // the checks are the proof
  const { sub: _, ...others } = claims;
  return Object.freeze(others) as RegisteredClaims; // the checks are the proof
}

const timeIds: ReadonlySet<string> = new Set(['exp', 'nbf', 'iat']);

/** The checks whose outcome changes while time passes. */
export const timeChecks: readonly Check<ClaimFacts>[] = claimChecks.filter(({ id }) => timeIds.has(id));

const hashClaims: readonly string[] = ['at_hash', 'c_hash', 's_hash'];
const otherUses: ReadonlySet<unknown> = new Set(['id', 'refresh']);
const otherTypes: ReadonlySet<unknown> = new Set(['ID', 'Refresh', 'Logout']);
const uriStart = /^[a-z][a-z\d+.-]*:/i;

function compareStart(received: unknown, { nbfTolerance }: ClaimRules, now: number): Comparison {
  return { received, time: { now, past: Number.POSITIVE_INFINITY, ahead: nbfTolerance } };
}

function isForUs(aud: unknown, { audiences, clientIds, isUnchecked }: ClaimRules): boolean {
  // The client says whom the token is for only as long as the token itself says nothing else.
  if (audiences.size === 0 && (clientIds !== undefined || isUnchecked === true)) return aud === undefined;
  return hasAudience(aud, audiences);
}

/** Reports whether one of these is in `aud`, and `aud` has the form that RFC 7519 §4.1.3 requires. */
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

function isAcceptedClient(claims: JsonObject, { clientIds, clientIdClaim, isUnchecked }: ClaimRules): boolean {
  // Some providers write an origin into azp: it does not say whom the token is for.
  if (isUnchecked === true) return findClaim(claims, clientIdClaim ?? 'client_id') === undefined;
  if (clientIds === undefined) return true;
  const client = readClient(claims, clientIdClaim);
  return typeof client === 'string' && clientIds.has(client);
}

function isScope(claims: JsonObject, scopeClaim: string | undefined): boolean {
  const value = scopeClaim === undefined ? claims['scope'] : findClaim(claims, scopeClaim);
  if (value === undefined || typeof value === 'string') return true;
  // RFC 9068 §2.2.3 allows only a string. An array is for issuers that are known to write one.
  return scopeClaim !== undefined && Array.isArray(value) && value.every((each) => typeof each === 'string');
}

/** ID tokens have the hashes (OpenID Connect Core §3.3.2.11); Cognito writes `token_use`, Keycloak `typ`. */
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

/** Reports whether `act` is absent, or an object with at most five actors in all. */
function isActorChain({ act }: JsonObject, most = 5): boolean {
  if (act === undefined) return true;
  return isJsonObject(act) && most > 0 && (!Object.hasOwn(act, 'act') || isActorChain(act, most - 1));
}

/** A profile of tokens beyond the checks of every token: `rfc9068` requires all that RFC 9068 §2 does. */
export type TokenProfile = 'rfc9068';

const types: ReadonlySet<string> = new Set(['at+jwt', 'application/at+jwt']);

/** Claims that must be strings (RFC 9068 §2.2), in order. `iss`, `aud`, `exp` and `iat` every token must have. */
export const profileChecks: readonly Check<Pick<ClaimFacts, 'claims'>>[] = [
  createCheck('profile_sub', ({ claims }) => typeof claims['sub'] === 'string'),
  createCheck('client_id', ({ claims }) => typeof claims['client_id'] === 'string'),
  createCheck('jti', ({ claims }) => typeof claims['jti'] === 'string'),
];

/** Reports whether a JOSE header has the type of an access token (RFC 9068 §2.1, §4). */
export function isProfileType({ typ }: JsonObject): boolean {
  return typeof typ === 'string' && types.has(typ.toLowerCase());
}

/** Confirmation of a token (RFC 7800 §3.1); all of it must be proven. Empty for an unbound token. */
export interface Confirmation {
  /** Thumbprint of a key (RFC 9449 §6.1). */
  readonly jkt: string | undefined;
  /** Thumbprint of a client certificate, `x5t#S256` (RFC 8705 §3.1). */
  readonly certificate: string | undefined;
}

export type CertificateBinding = 'off' | 'on';

/** Only its owner may send a bound token (RFC 8705 §3, RFC 9449 §7). The proof is checked after these. */
export const certificateChecks: readonly Check<{ certificate: string | undefined; presented: string | undefined }>[] = [
  createCheck('certificate_presented', ({ presented }) => presented !== undefined),
  createCheck('certificate', ({ certificate, presented }) => presented === certificate),
];

export const bindingChecks: readonly Check<{ jkt: string | undefined; scheme: Scheme }>[] = [
  createCheck('bound_scheme', ({ jkt, scheme }) => jkt === undefined || scheme === 'DPoP'),
  createCheck('unbound_scheme', ({ jkt, scheme }) => jkt !== undefined || scheme === 'Bearer'),
];

/** Registered confirmation methods that are not supported (IANA, JWT Confirmation Methods). */
const unsupported = ['jwk', 'jwe', 'jku', 'kid', 'osc'];
const methods = {
  off: { expected: 'jkt', refused: [...unsupported, 'x5t#S256'] },
  on: { expected: 'jkt or x5t#S256', refused: unsupported },
};

const unbound: Confirmation = { jkt: undefined, certificate: undefined };
/** base64url of 32 bytes. */
const thumbprintLength = 43;

/** Reads `cnf`. Refuses registered methods that cannot be confirmed here; ignores other members (RFC 7800 §3.1). */
export function readConfirmation({ cnf }: JsonObject, certificates: CertificateBinding): Confirmation | Refused {
  if (cnf === undefined) return unbound;
  if (!isJsonObject(cnf)) return new Refused('malformed_cnf');
  const { jkt, 'x5t#S256': certificate } = cnf;
  const { expected, refused } = methods[certificates];
  const received = refused.find((name) => Object.hasOwn(cnf, name));
  if (received !== undefined || (jkt === undefined && certificate === undefined)) {
    return new Refused('unsupported_cnf', { context: { expected, received: received ?? 'no supported member' } });
  }
  if (!isThumbprint(jkt) || !isThumbprint(certificate)) return new Refused('malformed_cnf');
  return { jkt, certificate };
}

/** Reports whether a member is absent or has the form of a SHA-256 thumbprint; it is compared later, byte for byte. */
function isThumbprint(value: unknown): value is string | undefined {
  return value === undefined || (typeof value === 'string' && value.length === thumbprintLength);
}
