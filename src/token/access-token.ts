import type { KeyObject } from 'node:crypto';
import { AccessError } from '../failures.ts';
import { type Algorithm, algorithms } from '../jose/algorithms.ts';
import { type JsonObject, parseJsonObject } from '../jose/json.ts';
import { isKid } from '../jose/jwk.ts';
import { type JwsDefect, type KnownHeaders, parseJws, refusedHeaderParameters, verifyJws } from '../jose/jws.ts';
import type { KeySet } from '../keys/key-set.ts';
import type { ClaimPath } from './claim-path.ts';
import { type ClaimRules, claimChecks, type RegisteredClaims } from './claims.ts';
import { type CertificateBinding, type Confirmation, readConfirmation } from './confirmation.ts';
import { findProfileDefect, isProfileType, type TokenProfile } from './profile.ts';
import { readScopes } from './scope.ts';
import type { CheckedPolicy } from './token-policy.ts';

/** What the tokens of one issuer are held against. */
export interface IssuerRules extends ClaimRules {
  readonly issuer: string;
  readonly keys: KeySet;
  /** `alg` values that are allowed. */
  readonly algorithms: ReadonlySet<string>;
  /** Where the permissions are. */
  readonly permissionsClaim: ClaimPath;
  /** Asked of every token of this issuer, before the policy of the route. */
  readonly policy?: CheckedPolicy | undefined;
  /** What tokens must have beyond the rules of the contract. Default: nothing. */
  readonly profile?: TokenProfile | undefined;
}

/** What of them goes for every token of the issuer, JWT or not. */
export type TokenRules = Omit<IssuerRules, 'issuer' | 'keys' | 'algorithms'>;

/** What an access token is held against. */
export interface AccessTokenRules {
  /** Issuers that are trusted, by `iss`, which is compared byte for byte. */
  readonly issuers: ReadonlyMap<string, IssuerRules>;
  /** `alg` values that any of them allows. */
  readonly algorithms: ReadonlySet<string>;
  /** Whether tokens may be bound to client certificates. Default `off`: such a token is refused. */
  readonly certificates?: CertificateBinding;
  /** Headers of tokens that were verified; this adds to them. */
  readonly headers: KnownHeaders & { set(headerText: string, header: JsonObject): unknown };
}

/** What a valid token says. Frozen, so that it can be shared by requests. */
export interface ValidToken extends Confirmation {
  readonly claims: RegisteredClaims;
  /** The elements of `scope`. */
  readonly scopes: ReadonlySet<string>;
  /** Whose rules it was held against, and the key that has signed it; `undefined` where its issuer was asked. */
  readonly verifiedBy: { readonly issuer: TokenRules; readonly kid: string | undefined };
}

/** What stands in a JWT, and what it was verified by. */
export interface VerifiedToken extends ValidToken {
  readonly verifiedBy: VerifiedBy;
}

/** The key that a token was verified by, and whose it is. */
export interface VerifiedBy {
  readonly issuer: IssuerRules;
  readonly kid: string;
  readonly alg: string;
  readonly key: KeyObject;
  /** That of the key set at the time. */
  readonly generation: number;
}

const accessTokenTypes: ReadonlySet<string> = new Set(['jwt', 'at+jwt', 'application/at+jwt']);
const defectReasons = {
  opaque: 'opaque_token',
  encrypted: 'encrypted_token',
  parts: 'malformed_token',
  encoding: 'malformed_encoding',
  header: 'malformed_header',
} as const satisfies Record<JwsDefect, string>;

/**
 * Judges a JWT access token (RFC 9068 §4, RFC 8725): shape, JOSE header, issuer, key, signature, claims, in this
 * order, so that nothing costs a key look-up or a signature before it must. A refusal is returned and not thrown, for
 * anybody can send what is refused, and a throw costs more than most of the checks. Synchronous: for a key that is not
 * at hand it is `unknown_kid` or `keys_unavailable`, and the caller decides whether to fetch. `now` is in seconds.
 */
export function verifyAccessToken(token: string, rules: AccessTokenRules, now: number): VerifiedToken | AccessError {
  const jws = parseJws(token, rules.headers);
  if (typeof jws === 'string') return new AccessError(defectReasons[jws]);
  const claims = parseJsonObject(jws.payload);
  if (claims === undefined) return new AccessError('malformed_claims');
  const header = readHeader(jws.header, rules.algorithms);
  if (header instanceof AccessError) return header;
  const issuer = findIssuer(claims, rules.issuers);
  if (issuer === undefined) return new AccessError('invalid_issuer');
  const { profile } = issuer;
  if (profile !== undefined && !isProfileType(jws.header)) return new AccessError('unsupported_typ');
  if (!issuer.algorithms.has(header.alg)) return new AccessError('unsupported_alg');
  const verifiedBy = findKey(issuer, header);
  if (verifiedBy instanceof AccessError) return verifiedBy;
  if (!verifyJws(jws, header.algorithm, verifiedBy.key)) return new AccessError('invalid_signature');
  // Only what an issuer of ours has signed is kept, so that nobody else can push it out.
  if (rules.headers.get(jws.headerText) === undefined) rules.headers.set(jws.headerText, jws.header);
  for (const check of claimChecks) {
    if (!check.passes(claims, issuer, now)) return new AccessError(check.reason);
  }
  const lacking = profile === undefined ? undefined : findProfileDefect(claims);
  if (lacking !== undefined) return new AccessError(lacking);
  const confirmation = readConfirmation(claims, rules.certificates ?? 'off');
  if (confirmation instanceof AccessError) return confirmation;
  const { jkt, certificate } = confirmation;
  const verified = claims as RegisteredClaims; // the checks above are the proof
  return { claims: verified, scopes: readScopes(claims, issuer.scopeClaim), jkt, certificate, verifiedBy };
}

interface Header {
  readonly alg: string;
  readonly algorithm: Algorithm;
  readonly kid: string | undefined;
}

/** Key material in the header (jwk, jku, x5u, x5c) is ignored: keys come only from the issuer (RFC 8725 §3.10). */
function readHeader(header: JsonObject, allowed: ReadonlySet<string>): Header | AccessError {
  const { alg, typ, kid } = header;
  const algorithm = typeof alg === 'string' && allowed.has(alg) ? algorithms.get(alg) : undefined;
  if (typeof alg !== 'string' || algorithm === undefined) return new AccessError('unsupported_alg');
  if (typ !== undefined && !(typeof typ === 'string' && accessTokenTypes.has(typ.toLowerCase()))) {
    return new AccessError('unsupported_typ');
  }
  for (const parameter of refusedHeaderParameters) {
    if (Object.hasOwn(header, parameter)) return new AccessError('unsupported_header', { context: { parameter } });
  }
  if (kid !== undefined && !isKid(kid)) return new AccessError('malformed_kid');
  return { alg, algorithm, kid };
}

/** The claims are still unverified here: this can only refuse. */
function findIssuer({ iss }: JsonObject, issuers: ReadonlyMap<string, IssuerRules>): IssuerRules | undefined {
  return typeof iss === 'string' ? issuers.get(iss) : undefined;
}

/** The context names the issuer, one of ours, so that its keys can be fetched. */
function findKey(issuer: IssuerRules, { kid, alg }: Header): VerifiedBy | AccessError {
  if (kid === undefined) return new AccessError('missing_kid');
  const { keys } = issuer;
  const key = keys.find(kid, alg);
  if (key !== undefined) return { issuer, kid, alg, key, generation: keys.generation };
  const isUsable = keys.usable();
  if (isUsable && keys.has(kid)) return new AccessError('key_not_usable', { context: { issuer: issuer.issuer } });
  return new AccessError(isUsable ? 'unknown_kid' : 'keys_unavailable', { context: { issuer: issuer.issuer } });
}
