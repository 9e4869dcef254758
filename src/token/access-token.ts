import type { KeyObject } from 'node:crypto';
import { addEvidence, type Check, createCheck, refuseByFirst } from '../check.ts';
import { AccessError } from '../failures.ts';
import { type Algorithm, algorithms, readAlg } from '../jose/algorithms.ts';
import { type JsonObject, parseJsonObject } from '../jose/json.ts';
import { isKid } from '../jose/jwk.ts';
import { findRefusedParameter, type Jws, type JwsDefect, type KnownHeaders, parseJws, verifyJws } from '../jose/jws.ts';
import type { KeySet } from '../keys/key-set.ts';
import type { ClaimPath } from './claim-path.ts';
import { type ClaimRules, claimChecks, type RegisteredClaims } from './claims.ts';
import { type CertificateBinding, type Confirmation, readConfirmation } from './confirmation.ts';
import { isProfileType, profileChecks, type TokenProfile } from './profile.ts';
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
  /** What tokens must have beyond the rules of docs/behaviour.md §3. Default: nothing. */
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

/** A JOSE header, and what it is held against. */
export interface HeaderFacts {
  readonly header: JsonObject;
  /** `alg` values that are allowed. */
  readonly algorithms: ReadonlySet<string>;
}

/** Key material in the header (jwk, jku, x5u, x5c) is ignored: keys come from the issuer only (RFC 8725 §3.10). */
export const headerChecks: readonly Check<HeaderFacts>[] = [
  createCheck('alg', 'unsupported_alg', ({ header: { alg }, algorithms }) => readAlg(alg, algorithms) !== undefined, {
    compare: ({ header: { alg }, algorithms }) => ({ expected: algorithms, received: alg }),
  }),
  createCheck(
    'typ',
    'unsupported_typ',
    ({ header: { typ } }) => typ === undefined || (typeof typ === 'string' && accessTokenTypes.has(typ.toLowerCase())),
    { compare: ({ header: { typ } }) => ({ expected: accessTokenTypes, received: typ }) },
  ),
  createCheck('parameters', 'unsupported_header', ({ header }) => findRefusedParameter(header) === undefined, {
    details: ({ header }) => ({ context: { parameter: String(findRefusedParameter(header)) } }),
  }),
  createCheck('kid_form', 'malformed_kid', ({ header: { kid } }) => kid === undefined || isKid(kid), { group: 'kid' }),
];

/** A JOSE header, and the issuer that the claims name. */
export interface IssuerFacts {
  readonly header: JsonObject;
  readonly issuer: IssuerRules;
}

/** What one issuer among several wants of a header. */
export const issuerChecks: readonly Check<IssuerFacts>[] = [
  createCheck(
    'issuer_typ',
    'unsupported_typ',
    ({ header, issuer }) => issuer.profile === undefined || isProfileType(header),
    { group: 'typ', compare: ({ header: { typ } }) => ({ expected: 'at+jwt', received: typ }) },
  ),
  createCheck(
    'issuer_alg',
    'unsupported_alg',
    ({ header: { alg }, issuer }) => readAlg(alg, issuer.algorithms) !== undefined,
    {
      group: 'alg',
      compare: ({ header: { alg }, issuer }) => ({ expected: issuer.algorithms, received: alg }),
    },
  ),
  createCheck('kid', 'missing_kid', ({ header: { kid } }) => kid !== undefined),
];

/**
 * Judges a JWT access token (RFC 9068 §4, RFC 8725): shape, JOSE header, issuer, key, signature, claims, in this
 * order, so that nothing costs a key look-up or a signature before it must. Synchronous: for a key that is not
 * at hand it is `unknown_kid` or `keys_unavailable`, and the caller decides whether to fetch. `now` is in seconds.
 */
export function verifyAccessToken(token: string, rules: AccessTokenRules, now: number): VerifiedToken | AccessError {
  const jws = readToken(token, rules.headers);
  if (jws instanceof AccessError) return jws;
  const claims = readClaims(jws);
  if (claims instanceof AccessError) return claims;
  const { header, headerText } = jws;
  const badHeader = refuseByFirst(headerChecks, { header, algorithms: rules.algorithms });
  if (badHeader !== undefined) return addEvidence(badHeader, { kid: header['kid'] });
  const issuer = findIssuer(claims, rules.issuers);
  if (issuer instanceof AccessError) return describeIssuer(issuer, { header, claims, issuers: rules.issuers });
  const badForIssuer = refuseByFirst(issuerChecks, { header, issuer });
  if (badForIssuer !== undefined) return addEvidence(badForIssuer, { kid: header['kid'] });
  const { kid, alg } = header as unknown as CheckedHeader; // the checks above are the proof
  const verifiedBy = findKey(issuer, kid, alg);
  if (verifiedBy instanceof AccessError) return addEvidence(verifiedBy, { kid });
  const algorithm = readAlg(alg) as Algorithm; // so is this
  if (!verifyJws(jws, algorithm, verifiedBy.key)) {
    return addEvidence(new AccessError('invalid_signature'), { kid });
  }
  // Only what an issuer of ours has signed is kept, so that nobody else can push it out.
  if (rules.headers.get(headerText) === undefined) rules.headers.set(headerText, header);
  const badClaim = refuseByFirst(claimChecks, { claims, rules: issuer, now });
  if (badClaim !== undefined) return addEvidence(badClaim, { kid, claims });
  const lacking = issuer.profile === undefined ? undefined : refuseByFirst(profileChecks, { claims });
  if (lacking !== undefined) return addEvidence(lacking, { kid, claims });
  const confirmation = readConfirmation(claims, rules.certificates ?? 'off');
  if (confirmation instanceof AccessError) return addEvidence(confirmation, { kid, claims });
  const { jkt, certificate } = confirmation;
  const verified = claims as RegisteredClaims; // so are these
  return { claims: verified, scopes: readScopes(claims, issuer.scopeClaim), jkt, certificate, verifiedBy };
}

interface Foreign {
  readonly header: JsonObject;
  readonly claims: JsonObject;
  readonly issuers: ReadonlyMap<string, IssuerRules>;
}

/** A function of its own: what a closure holds on to would cost every token something, also one that is good. */
function describeIssuer(refusal: AccessError, { header, claims, issuers }: Foreign): AccessError {
  const compare = () => ({ expected: issuers.keys(), received: claims['iss'] });
  return addEvidence(refusal, { kid: header['kid'], compare });
}

interface CheckedHeader {
  readonly alg: string;
  readonly kid: string;
}

/** The token as a JWS, not yet verified. */
export function readToken(token: string, known?: KnownHeaders): Jws | AccessError {
  const jws = parseJws(token, known);
  return typeof jws === 'string' ? new AccessError(defectReasons[jws]) : jws;
}

/** The claims of a token, not yet looked into. */
export function readClaims({ payload }: Jws): JsonObject | AccessError {
  return parseJsonObject(payload) ?? new AccessError('malformed_claims');
}

const knownAlgorithms: ReadonlySet<string> = new Set(algorithms.keys());

/** `iss` of a token that is not verified; `undefined` if the token is refused before its issuer is compared. */
export function readUnverifiedIssuer(token: string, known: KnownHeaders): string | undefined {
  const jws = readToken(token, known);
  if (jws instanceof AccessError) return undefined;
  const claims = readClaims(jws);
  if (claims instanceof AccessError) return undefined;
  if (refuseByFirst(headerChecks, { header: jws.header, algorithms: knownAlgorithms }) !== undefined) return undefined;
  const { iss } = claims;
  return typeof iss === 'string' ? iss : undefined;
}

/** The claims are still unverified here: this can only refuse. */
export function findIssuer({ iss }: JsonObject, issuers: ReadonlyMap<string, IssuerRules>): IssuerRules | AccessError {
  const issuer = typeof iss === 'string' ? issuers.get(iss) : undefined;
  return issuer ?? new AccessError('invalid_issuer');
}

/** The key at hand. The context names the issuer, one of ours, so that its keys can be fetched. */
export function findKey(issuer: IssuerRules, kid: string, alg: string): VerifiedBy | AccessError {
  const { keys } = issuer;
  const key = keys.find(kid, alg);
  if (key !== undefined) return { issuer, kid, alg, key, generation: keys.generation };
  const isUsable = keys.usable();
  if (isUsable && keys.has(kid)) return new AccessError('key_not_usable', { context: { issuer: issuer.issuer } });
  return new AccessError(isUsable ? 'unknown_kid' : 'keys_unavailable', { context: { issuer: issuer.issuer } });
}
