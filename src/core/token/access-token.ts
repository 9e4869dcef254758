import type { KeyObject } from 'node:crypto';
import { type Check, createCheck, refuseByFirst } from '../checks.ts';
import type { Reason } from '../failures.ts';
import { type JsonObject, parseJsonObject } from '../jose/json.ts';
import {
  type Algorithm,
  algorithms,
  findRefusedParameter,
  isKid,
  type Jws,
  type JwsDefect,
  type KnownHeaders,
  parseJws,
  readAlg,
  verifyJws,
} from '../jose/jws.ts';
import { findAll, type KeySet } from '../keys/key-set.ts';
import { Refused } from '../refused.ts';
import type { Walk } from '../walk.ts';
import {
  type CertificateBinding,
  type ClaimRules,
  type Confirmation,
  claimChecks,
  isProfileType,
  profileChecks,
  type RegisteredClaims,
  readConfirmation,
  readRegistered,
  type TokenProfile,
} from './claims.ts';
import { type PermissionsPath, readScopes } from './grants.ts';
import type { CheckedPolicy } from './token-policy.ts';

export interface IssuerRules extends ClaimRules {
  readonly issuer: string;
  readonly keys: KeySet;
  readonly algorithms: ReadonlySet<string>;
  readonly permissionsClaim: PermissionsPath;
  /** Policy for every token of this issuer, before the policy of the route. */
  readonly policy?: CheckedPolicy | undefined;
  readonly profile?: TokenProfile | undefined;
}

export type TokenRules = Omit<IssuerRules, 'issuer' | 'keys' | 'algorithms'>;

export interface AccessTokenRules {
  /** Issuers that are trusted, by `iss`, which is compared byte for byte. */
  readonly issuers: ReadonlyMap<string, IssuerRules>;
  /** `alg` values that any of them allows. */
  readonly algorithms: ReadonlySet<string>;
  /** Support for tokens bound to client certificates. Default: `off`, which refuses them. */
  readonly certificates?: CertificateBinding;
  /** Headers of tokens that were verified; this adds to them. */
  readonly headers: KnownHeaders & { set(headerText: string, header: JsonObject): unknown };
  /** Steps of a dry run: each check is made, also after a failed one. */
  readonly walk?: Walk | undefined;
}

/** Content of a valid token. Frozen, so that requests can share it. */
export interface ValidToken extends Confirmation {
  readonly claims: RegisteredClaims;
  /** The elements of `scope`. */
  readonly scopes: ReadonlySet<string>;
  /** Rules and key that verified the token; the key is `undefined` after introspection. */
  readonly verifiedBy: { readonly issuer: TokenRules; readonly kid: string | undefined };
}

/** Content of a JWT, and the rules and key that verified it. */
export interface VerifiedToken extends ValidToken {
  readonly verifiedBy: VerifiedBy;
}

export interface VerifiedBy {
  readonly issuer: IssuerRules;
  readonly kid: string;
  readonly alg: string;
  readonly key: KeyObject;
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

/** Key material in the header (jwk, jku, x5u, x5c) is ignored: keys come from the issuer only (RFC 8725 §3.10). */
export const headerChecks: readonly Check<{ readonly header: JsonObject; readonly algorithms: ReadonlySet<string> }>[] =
  [
    createCheck('alg', ({ header: { alg }, algorithms }) => readAlg(alg, algorithms) !== undefined, {
      compare: ({ header: { alg }, algorithms }) => ({ expected: algorithms, received: alg }),
    }),
    createCheck(
      'typ',
      ({ header: { typ } }) =>
        typ === undefined || (typeof typ === 'string' && accessTokenTypes.has(typ.toLowerCase())),
      { compare: ({ header: { typ } }) => ({ expected: accessTokenTypes, received: typ }) },
    ),
    createCheck('parameters', ({ header }) => findRefusedParameter(header) === undefined, {
      details: ({ header }) => ({ context: { parameter: String(findRefusedParameter(header)) } }),
    }),
    createCheck('kid_form', ({ header: { kid } }) => kid === undefined || isKid(kid)),
  ];

export const issuerChecks: readonly Check<{ readonly header: JsonObject; readonly issuer: IssuerRules }>[] = [
  createCheck('issuer_typ', ({ header, issuer }) => issuer.profile === undefined || isProfileType(header), {
    compare: ({ header: { typ } }) => ({ expected: 'at+jwt', received: typ }),
  }),
  createCheck('issuer_alg', ({ header: { alg }, issuer }) => readAlg(alg, issuer.algorithms) !== undefined, {
    compare: ({ header: { alg }, issuer }) => ({ expected: issuer.algorithms, received: alg }),
  }),
  createCheck('kid', ({ header: { kid } }) => kid !== undefined),
];

/**
 * Verifies a JWT access token (RFC 9068 §4, RFC 8725), in an order in which no key look-up and no signature is made in vain.
 * Without I/O: the caller may fetch keys for the reasons in `missingKeys`. `now` is in seconds.
 */
export function verifyAccessToken(token: string, rules: AccessTokenRules, now: number): VerifiedToken | Refused {
  const { walk } = rules;
  const jws = readToken(token, rules.headers);
  walk?.stage('shape', jws);
  if (jws instanceof Refused) return jws;
  const claims = readClaims(jws);
  walk?.stage('claims_form', claims);
  if (claims instanceof Refused) return claims;
  const { header, headerText } = jws;
  const badHeader = refuseByFirst(headerChecks, { header, algorithms: rules.algorithms }, walk);
  if (badHeader !== undefined) return badHeader.attest({ kid: header['kid'] });
  const found = findIssuer(claims, rules.issuers);
  const issuer = walk === undefined ? found : walk.proceed('issuer', found, findOnly(rules.issuers));
  if (issuer instanceof Refused) return issuer.attest({ kid: header['kid'] });
  const badForIssuer = refuseByFirst(issuerChecks, { header, issuer }, walk);
  if (badForIssuer !== undefined) return badForIssuer.attest({ kid: header['kid'] });
  const { kid } = header as JsonObject & { readonly kid: string }; // the checks above are the proof
  const verifiedBy = verifySignature(jws, issuer, walk);
  if (verifiedBy instanceof Refused && walk === undefined) return verifiedBy.attest({ kid });
  // Only values signed by a trusted issuer are kept, so that no attacker can evict them.
  if (rules.headers.get(headerText) === undefined) rules.headers.set(headerText, header);
  const badClaim = refuseByFirst(claimChecks, { claims, rules: issuer, now }, walk);
  const scopes = readScopes(claims, issuer.scopeClaim);
  if (badClaim !== undefined) return badClaim.attest({ kid, claims, scopes });
  const lacking = issuer.profile === undefined ? undefined : refuseByFirst(profileChecks, { claims }, walk);
  if (lacking !== undefined) return lacking.attest({ kid, claims, scopes });
  const confirmation = readConfirmation(claims, rules.certificates ?? 'off');
  walk?.stage('confirmation', confirmation);
  if (confirmation instanceof Refused) return confirmation.attest({ kid, claims, scopes });
  if (verifiedBy instanceof Refused) return verifiedBy;
  const refusal = walk?.refusal();
  if (refusal !== undefined) return refusal;
  const { jkt, certificate } = confirmation;
  return { claims: readRegistered(claims), scopes, jkt, certificate, verifiedBy };
}

export function readToken(token: string, known?: KnownHeaders): Jws | Refused {
  const jws = parseJws(token, known);
  return typeof jws === 'string' ? new Refused(defectReasons[jws]) : jws;
}

export function readClaims({ payload }: Jws): JsonObject | Refused {
  return parseJsonObject(payload) ?? new Refused('malformed_claims');
}

/** Logout tokens have other types. */
export const untypedChecks = headerChecks.filter(({ id }) => id !== 'typ');
const knownAlgorithms: ReadonlySet<string> = new Set(algorithms.keys());

/** `iss` of a token that is not verified; `undefined` if the token is refused before its issuer is compared. */
export function readUnverifiedIssuer(token: string, known: KnownHeaders): string | undefined {
  const jws = readToken(token, known);
  if (jws instanceof Refused) return undefined;
  const claims = readClaims(jws);
  if (claims instanceof Refused) return undefined;
  if (refuseByFirst(untypedChecks, { header: jws.header, algorithms: knownAlgorithms }) !== undefined) return undefined;
  const { iss } = claims;
  return typeof iss === 'string' ? iss : undefined;
}

/** The claims are still unverified here: this can only refuse. */
export function findIssuer({ iss }: JsonObject, issuers: ReadonlyMap<string, IssuerRules>): IssuerRules | Refused {
  const issuer = typeof iss === 'string' ? issuers.get(iss) : undefined;
  return issuer ?? refuseIssuer(iss, issuers);
}

function findOnly(issuers: ReadonlyMap<string, IssuerRules>): IssuerRules | undefined {
  return issuers.size === 1 ? issuers.values().next().value : undefined;
}

/** A separate function: a closure would cost every token memory, even a valid one. */
function refuseIssuer(received: unknown, issuers: ReadonlyMap<string, IssuerRules>): Refused {
  return new Refused('invalid_issuer', undefined, { compare: () => ({ expected: issuers.keys(), received }) });
}

/** Verifies a signature by a cached key of the issuer, which allows the algorithm. */
export function verifySignature(jws: Jws, issuer: IssuerRules, walk?: Walk): VerifiedBy | Refused {
  if (walk?.hasPassed('alg', 'kid_form', 'issuer', 'issuer_alg', 'kid') === false) {
    walk.leave('blocked', 'key', 'signature');
    return new Refused('invalid_signature');
  }
  const { alg, kid } = jws.header as JsonObject & Record<'alg' | 'kid', string>; // the caller has checked them
  const verifiedBy = findKey(issuer, kid, alg);
  walk?.stage('key', verifiedBy);
  if (verifiedBy instanceof Refused) {
    walk?.leave('blocked', 'signature');
    return verifiedBy;
  }
  const algorithm = readAlg(alg) as Algorithm; // so is this
  const signed = verifyJws(jws, algorithm, verifiedBy.key) ? verifiedBy : verifyByOthers(jws, algorithm, verifiedBy);
  walk?.stage('signature', signed);
  return signed;
}

/** Tries the other keys with the same `kid`. */
function verifyByOthers(jws: Jws, algorithm: Algorithm, first: VerifiedBy): VerifiedBy | Refused {
  const { issuer, kid, alg } = first;
  const [, ...others] = findAll(issuer.keys, kid, alg);
  const key = others.find((each) => verifyJws(jws, algorithm, each));
  return key === undefined ? new Refused('invalid_signature') : { ...first, key };
}

/** Reasons that a fetch of the keys can remove. */
export const missingKeys: ReadonlySet<Reason> = new Set(['unknown_kid', 'key_not_usable', 'keys_unavailable']);

/** Finds a cached key. The context names the trusted issuer, so that its keys can be fetched. */
function findKey(issuer: IssuerRules, kid: string, alg: string): VerifiedBy | Refused {
  const { keys } = issuer;
  const key = keys.find(kid, alg);
  if (key !== undefined) return { issuer, kid, alg, key, generation: keys.generation };
  const missing = keys.has(kid) ? 'key_not_usable' : 'unknown_kid';
  return new Refused(keys.usable() ? missing : 'keys_unavailable', { context: { issuer: issuer.issuer } });
}
