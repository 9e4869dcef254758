import { type Check, type Comparison, createCheck } from '../check.ts';
import type { ExternalUrl } from '../http/external-url.ts';
import { readAlg } from '../jose/algorithms.ts';
import { isJsonObject, type JsonObject } from '../jose/json.ts';
import { findThumbprint, privateMembers } from '../jose/jwk.ts';
import { findRefusedParameter } from '../jose/jws.ts';
import { isTime } from '../jose/numeric-date.ts';
import { explainMismatch, normaliseUrl, showUrl } from './htu.ts';

/** A proof and what it has to fit. */
export interface ProofRequest {
  /** Value of the DPoP header. */
  readonly proof: string;
  readonly method: string;
  /** URL of the request as the client used it. */
  readonly url: Pick<ExternalUrl, 'origin' | 'path' | 'pinned'>;
  /** base64url of the SHA-256 of the access token that came with the proof. */
  readonly ath: string;
  /** The thumbprint that the verified access token is bound to. */
  readonly jkt: string;
  /** Seconds since the epoch. */
  readonly now: number;
}

/** What the header of a proof is held against. */
export interface ProofHeaderFacts {
  readonly header: JsonObject;
  /** `alg` values that are accepted. */
  readonly algorithms: ReadonlySet<string>;
}

/** What the claims of a proof are held against. */
export interface ProofClaimFacts {
  readonly claims: JsonObject;
  readonly request: Pick<ProofRequest, 'method' | 'url' | 'ath' | 'now'>;
}

/** The key of a proof, and the thumbprint that the access token is bound to. */
export interface ProofKeyFacts {
  readonly jwk: JsonObject;
  readonly jkt: string;
}

const maxJtiLength = 256;
/** Seconds that a proof may be ahead. */
const maxLead = 30;
/** Seconds after its `iat` for which a proof is accepted. */
export const proofLifetime = 300;

/** RFC 9449 §4.3 (4), (5), (7). */
export const proofHeaderChecks: readonly Check<ProofHeaderFacts>[] = [
  createCheck('proof_typ', 'unsupported_proof_typ', ({ header }) => header['typ'] === 'dpop+jwt'),
  createCheck(
    'proof_alg',
    'unsupported_proof_alg',
    ({ header, algorithms }) => readAlg(header['alg'], algorithms) !== undefined,
    { compare: ({ header: { alg }, algorithms }) => ({ expected: algorithms, received: alg }) },
  ),
  createCheck(
    'proof_parameters',
    'unsupported_proof_header',
    ({ header }) => findRefusedParameter(header) === undefined,
    {
      details: ({ header }) => ({ context: { parameter: String(findRefusedParameter(header)) } }),
    },
  ),
  createCheck('proof_jwk', 'malformed_proof_jwk', ({ header }) => isJsonObject(header['jwk']), {
    details: () => ({ context: { defect: 'malformed' } }),
  }),
  createCheck('proof_jwk_public', 'private_proof_jwk', ({ header: { jwk } }) => !isJsonObject(jwk) || isPublic(jwk), {
    group: 'proof_jwk',
  }),
  createCheck('proof_jwk_alg', 'malformed_proof_jwk', ({ header }) => hasFittingKey(header), {
    group: 'proof_jwk',
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
  createCheck('proof_method', 'proof_method_mismatch', ({ claims, request }) => claims['htm'] === request.method, {
    group: 'proof_htm',
    compare: ({ claims: { htm }, request }) => ({ expected: request.method, received: htm }),
  }),
  createCheck('proof_url', 'proof_url_mismatch', ({ claims, request }) => isForUrl(claims['htu'], request.url), {
    group: 'proof_htu',
    details: ({ claims, request }) => ({ context: describeUrls(claims['htu'], request.url) }),
  }),
  createCheck(
    'proof_age',
    'proof_too_old',
    ({ claims: { iat }, request }) => isTime(iat) && iat >= request.now - proofLifetime,
    { group: 'proof_iat', compare: compareAge },
  ),
  createCheck(
    'proof_lead',
    'proof_in_future',
    ({ claims: { iat }, request }) => isTime(iat) && iat <= request.now + maxLead,
    { group: 'proof_iat', compare: compareAge },
  ),
  createCheck('proof_token', 'proof_token_mismatch', ({ claims, request }) => claims['ath'] === request.ath, {
    group: 'proof_ath',
  }),
];

/** RFC 9449 §4.3 (12): the access token is bound to this key. */
export const proofKeyChecks: readonly Check<ProofKeyFacts>[] = [
  createCheck('proof_key', 'proof_key_mismatch', ({ jwk, jkt }) => findThumbprint(jwk) === jkt),
];

function compareAge({ claims: { iat }, request: { now } }: ProofClaimFacts): Comparison {
  return { received: iat, time: { now, past: proofLifetime, ahead: maxLead } };
}

function checkType(claim: string, isRight: (value: unknown) => boolean): Check<ProofClaimFacts> {
  return createCheck(`proof_${claim}_form`, 'malformed_proof_claims', ({ claims }) => isRight(claims[claim]), {
    group: `proof_${claim}`,
    details: () => ({ context: { claim } }),
  });
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

function isPublic(jwk: JsonObject): boolean {
  for (const member of privateMembers) if (Object.hasOwn(jwk, member)) return false;
  return true;
}

/** Whether the key is of the type and the curve of `alg`, and says so if it says anything. */
function hasFittingKey({ alg, jwk }: JsonObject): boolean {
  const algorithm = readAlg(alg);
  if (algorithm === undefined || !isJsonObject(jwk)) return false;
  const fits = jwk['kty'] === algorithm.kty && (algorithm.crv === undefined || jwk['crv'] === algorithm.crv);
  return fits && (jwk['alg'] === undefined || jwk['alg'] === alg);
}

/** RFC 9449 §4.3 (9): equal, as it is or after normalisation. */
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
