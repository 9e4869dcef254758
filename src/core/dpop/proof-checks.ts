import { type Check, createCheck } from '../checks.ts';
import type { ExternalUrl } from '../http/external-url.ts';
import { isJsonObject, isTime, type JsonObject } from '../jose/json.ts';
import { findPrivateMember, findThumbprint, isKeyFor } from '../jose/jwk.ts';
import { findRefusedParameter, readAlg } from '../jose/jws.ts';
import type { Comparison } from '../refused.ts';
import type { Walk } from '../walk.ts';
import { explainMismatch, normaliseUrl, showUrl } from './htu.ts';

export interface ProofRequest {
  readonly proof: string;
  readonly method: string;
  readonly url: Pick<ExternalUrl, 'origin' | 'path' | 'pinned'>;
  /** base64url of the SHA-256 of the access token that came with the proof. */
  readonly ath: string;
  /** The thumbprint that the verified access token is bound to. */
  readonly jkt: string;
  /** Seconds since the epoch. */
  readonly now: number;
  /** Steps of a dry run: each check is made, also after a failed one, and no key is cached. */
  readonly walk?: Walk | undefined;
}

type ProofHeaderFacts = { readonly header: JsonObject; readonly algorithms: ReadonlySet<string> };

type ProofClaimFacts = { readonly claims: JsonObject; readonly request: Omit<ProofRequest, 'proof' | 'jkt'> };

const maxJtiLength = 256;
/** Seconds that a proof may be ahead. */
const maxLead = 30;
/** Seconds after its `iat` for which a proof is accepted. */
export const proofLifetime = 300;

/** RFC 9449 §4.3 (4), (5), (7). */
export const proofHeaderChecks: readonly Check<ProofHeaderFacts>[] = [
  createCheck('proof_typ', ({ header }) => header['typ'] === 'dpop+jwt'),
  createCheck('proof_alg', ({ header, algorithms }) => readAlg(header['alg'], algorithms) !== undefined, {
    compare: ({ header: { alg }, algorithms }) => ({ expected: algorithms, received: alg }),
  }),
  createCheck('proof_parameters', ({ header }) => findRefusedParameter(header) === undefined, {
    details: ({ header }) => ({ context: { parameter: String(findRefusedParameter(header)) } }),
  }),
  createCheck('proof_jwk', ({ header }) => isJsonObject(header['jwk']), {
    details: () => ({ context: { defect: 'malformed' } }),
  }),
  createCheck('proof_jwk_public', ({ header: { jwk } }) => !isJsonObject(jwk) || findPrivateMember(jwk) === undefined),
  createCheck('proof_jwk_alg', ({ header }) => hasFittingKey(header), {
    details: () => ({ context: { defect: 'alg_mismatch' } }),
  }),
];

/** RFC 9449 §4.3 (3): every claim of §4.2, each of its type. Then (8) to (11). */
export const proofClaimChecks: readonly Check<ProofClaimFacts>[] = [
  checkType('jti', (jti) => typeof jti === 'string' && jti !== '' && jti.length <= maxJtiLength),
  checkType('htm', isText),
  checkType('htu', isText),
  checkType('iat', isTime),
  checkType('ath', isText),
  checkType('nonce', (nonce) => nonce === undefined || isText(nonce)),
  // Methods are case-sensitive (RFC 9110 §9.1).
  createCheck('proof_method', ({ claims, request }) => claims['htm'] === request.method, {
    compare: ({ claims: { htm }, request }) => ({ expected: request.method, received: htm }),
  }),
  createCheck('proof_url', ({ claims, request }) => isForUrl(claims['htu'], request.url), {
    details: ({ claims, request }) => ({ context: describeUrls(claims['htu'], request.url) }),
  }),
  createCheck('proof_age', ({ claims: { iat }, request }) => isTime(iat) && iat >= request.now - proofLifetime, {
    compare: compareAge,
  }),
  createCheck('proof_lead', ({ claims: { iat }, request }) => isTime(iat) && iat <= request.now + maxLead, {
    compare: compareAge,
  }),
  createCheck('proof_token', ({ claims, request }) => claims['ath'] === request.ath),
];

/** RFC 9449 §4.3 (12): the access token is bound to this key. */
export const proofKeyChecks: readonly Check<{ readonly jwk: JsonObject; readonly jkt: string }>[] = [
  createCheck('proof_key', ({ jwk, jkt }) => findThumbprint(jwk) === jkt),
];

function compareAge({ claims: { iat }, request: { now } }: ProofClaimFacts): Comparison {
  return { received: iat, time: { now, past: proofLifetime, ahead: maxLead } };
}

function checkType(
  claim: 'jti' | 'htm' | 'htu' | 'iat' | 'ath' | 'nonce',
  isRight: (value: unknown) => boolean,
): Check<ProofClaimFacts> {
  return createCheck(`proof_${claim}_form`, ({ claims }) => isRight(claims[claim]), {
    details: () => ({ context: { claim } }),
  });
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

/** Reports whether the key has the type and curve of `alg`, and no other `alg`. */
function hasFittingKey({ alg, jwk }: JsonObject): boolean {
  const algorithm = readAlg(alg);
  if (algorithm === undefined || !isJsonObject(jwk)) return false;
  return isKeyFor(jwk, algorithm) && (jwk['alg'] === undefined || jwk['alg'] === alg);
}

/** Reports whether the URL is equal, unchanged or after normalisation (RFC 9449 §4.3 (9)). */
function isForUrl(htu: unknown, { origin, path }: ProofRequest['url']): boolean {
  if (typeof htu !== 'string') return false;
  const url = origin + path;
  if (htu === url) return true;
  const expected = normaliseUrl(url);
  return expected !== undefined && normaliseUrl(htu) === expected;
}

/** Both come from the client: the log gets them in normal form only, which holds nothing but printable ASCII. */
function describeUrls(htu: unknown, { origin, path, pinned }: ProofRequest['url']) {
  const expected = normaliseUrl(origin + path);
  const received = typeof htu === 'string' ? normaliseUrl(htu) : undefined;
  return {
    expected: showUrl(expected),
    received: showUrl(received),
    hint: explainMismatch(expected, received, pinned),
  };
}
