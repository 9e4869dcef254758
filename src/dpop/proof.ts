import type { KeyObject } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { AccessError } from '../failures.ts';
import type { ExternalUrl } from '../http/external-url.ts';
import { type Algorithm, algorithms, proofAlgorithms } from '../jose/algorithms.ts';
import { isJsonObject, type JsonObject, parseJsonObject } from '../jose/json.ts';
import { importPublicJwk, privateMembers, thumbprint } from '../jose/jwk.ts';
import { type Jws, type KnownHeaders, parseJws, refusedHeaderParameters, verifyJws } from '../jose/jws.ts';
import { isTime } from '../jose/numeric-date.ts';
import { explainMismatch, normaliseUrl, showUrl } from './htu.ts';
import type { Nonces } from './nonce.ts';

/** Options of {@link createProofVerifier}. */
export interface ProofVerifierOptions {
  /** `alg` values that are accepted: any of ES256, ES384, EdDSA, RS256, PS256. Default `ES256`. */
  readonly algorithms?: readonly string[] | undefined;
  /** Demands a nonce of these in each proof. Default: none is demanded, and what a proof has is ignored. */
  readonly nonces?: Nonces | undefined;
  /** Public keys that are kept, at some 2 KiB each. Default 10 000. */
  readonly cachedKeys?: number | undefined;
}

/** A proof and what it has to fit. */
export interface ProofRequest {
  /** Value of the DPoP header. */
  readonly proof: string;
  readonly method: string;
  /** URL of the request as the client used it. */
  readonly url: Pick<ExternalUrl, 'origin' | 'path'>;
  /** base64url of the SHA-256 of the access token that came with the proof. */
  readonly ath: string;
  /** The thumbprint that the verified access token is bound to. */
  readonly jkt: string;
  /** Seconds since the epoch. */
  readonly now: number;
}

/** A proof that holds but for its replay, which has still to be looked for. */
export interface VerifiedProof {
  readonly jkt: string;
  readonly jti: string;
  /** Seconds since the epoch: the last moment at which the proof would be accepted. */
  readonly expires: number;
  /** A nonce for the client, whose own is about to end (RFC 9449 §8.2). */
  readonly nonce?: string;
}

/** Judges a proof (RFC 9449 §4.3), synchronously. Throws `AccessError`. */
export type VerifyProof = (request: ProofRequest) => VerifiedProof;

interface Header {
  readonly algorithm: Algorithm;
  readonly jwk: JsonObject;
}

/** A key that a verified access token is bound to, and the header that named it last. */
interface KnownKey {
  readonly key: KeyObject;
  readonly header: JsonObject;
  readonly headerText: string;
}

interface ProofClaims {
  readonly jti: string;
  readonly htm: string;
  readonly htu: string;
  readonly iat: number;
  readonly ath: string;
  readonly nonce: string | undefined;
}

const maxProofLength = 4096;
const maxJtiLength = 256;
/** Seconds that a proof may be ahead. */
const maxLead = 30;

/** Seconds after its `iat` for which a proof is accepted. */
export const proofLifetime = 300;

/**
 * Creates the verifier of proofs. Whatever costs little is checked before the signature. The nonce comes after it:
 * `use_dpop_nonce` tells a client to try again, which helps only one whose proof is right in everything else.
 * Throws `TypeError` for an algorithm that cannot be accepted.
 */
export function createProofVerifier(options: ProofVerifierOptions = {}): VerifyProof {
  const { nonces, cachedKeys = 10_000 } = options;
  const allowed = new Set(options.algorithms ?? ['ES256']);
  for (const alg of allowed) {
    if (!proofAlgorithms.some((known) => known === alg))
      throw new TypeError(`algorithms: write any of ${proofAlgorithms.join(', ')}`);
  }
  if (allowed.size === 0) throw new TypeError('algorithms: name at least one');
  // By thumbprint, which stands for only one key whatever else its jwk says; and only keys that a verified access
  // token is bound to get in, so that nobody can push out the keys of others. The length of a proof bounds each key.
  const keys = new LRUCache<string, KnownKey>({ max: cachedKeys });

  const importKey = (jws: Jws, jwk: JsonObject, jkt: string): KeyObject => {
    const { header, headerText } = jws;
    // RFC 9449 §4.3 (12): bound to this key.
    if (thumbprint(jwk) !== jkt) throw new AccessError('proof_key_mismatch');
    const key = keys.peek(jkt)?.key ?? importPublicJwk(jwk);
    if (typeof key === 'string') throw new AccessError('malformed_proof_jwk', { context: { defect: key } });
    keys.set(jkt, { key, header, headerText });
    return key;
  };

  return (request) => {
    const known = keys.get(request.jkt);
    const jws = readProof(request.proof, { get: (text) => (text === known?.headerText ? known.header : undefined) });
    const { algorithm, jwk } = readHeader(jws.header, allowed);
    const claims = readClaims(jws);
    // RFC 9449 §4.3 (8): methods are case-sensitive (RFC 9110 §9.1).
    if (claims.htm !== request.method) throw new AccessError('proof_method_mismatch');
    checkUrl(claims.htu, request.url);
    if (claims.iat < request.now - proofLifetime) throw new AccessError('proof_too_old');
    if (claims.iat > request.now + maxLead) throw new AccessError('proof_in_future');
    if (claims.ath !== request.ath) throw new AccessError('proof_token_mismatch');
    // Equal by its text to a header that was judged: it names the same key.
    const key = known?.header === jws.header ? known.key : importKey(jws, jwk, request.jkt);
    if (!verifyJws(jws, algorithm, key)) throw new AccessError('invalid_proof_signature');
    const nonce = nonces === undefined ? undefined : checkNonce(claims.nonce, nonces, request.now);
    return {
      jkt: request.jkt,
      jti: claims.jti,
      expires: claims.iat + proofLifetime,
      ...(nonce !== undefined && { nonce }),
    };
  };
}

function readProof(proof: string, known: KnownHeaders): Jws {
  // RFC 9449 §4.3 (1): headers of one name reach us joined by commas, which no JWS has.
  if (proof.includes(',')) throw new AccessError('multiple_dpop_proofs');
  if (proof.length > maxProofLength) throw new AccessError('proof_too_large');
  const jws = parseJws(proof, known);
  if (typeof jws === 'string') throw new AccessError('malformed_proof', { context: { defect: jws } });
  return jws;
}

function readHeader(header: JsonObject, allowed: ReadonlySet<string>): Header {
  const { typ, alg, jwk } = header;
  // RFC 9449 §4.3 (4), (5).
  if (typ !== 'dpop+jwt') throw new AccessError('unsupported_proof_typ');
  const algorithm = typeof alg === 'string' && allowed.has(alg) ? algorithms.get(alg) : undefined;
  if (algorithm === undefined) throw new AccessError('unsupported_proof_alg');
  for (const parameter of refusedHeaderParameters) {
    if (Object.hasOwn(header, parameter)) throw new AccessError('unsupported_proof_header', { context: { parameter } });
  }
  if (!isJsonObject(jwk)) throw new AccessError('malformed_proof_jwk', { context: { defect: 'malformed' } });
  // RFC 9449 §4.3 (7).
  for (const member of privateMembers) {
    if (Object.hasOwn(jwk, member)) throw new AccessError('private_proof_jwk');
  }
  const fits = jwk['kty'] === algorithm.kty && (algorithm.crv === undefined || jwk['crv'] === algorithm.crv);
  if (!fits || (jwk['alg'] !== undefined && jwk['alg'] !== alg)) {
    throw new AccessError('malformed_proof_jwk', { context: { defect: 'alg_mismatch' } });
  }
  return { algorithm, jwk };
}

/** RFC 9449 §4.3 (3): every claim of §4.2, each of its type. */
function readClaims({ payload }: Jws): ProofClaims {
  const claims = parseJsonObject(payload);
  if (claims === undefined) throw new AccessError('malformed_proof');
  const { jti, htm, htu, iat, ath, nonce } = claims;
  if (typeof jti !== 'string' || jti === '' || jti.length > maxJtiLength) throw malformedClaim('jti');
  if (typeof htm !== 'string') throw malformedClaim('htm');
  if (typeof htu !== 'string') throw malformedClaim('htu');
  if (!isTime(iat)) throw malformedClaim('iat');
  if (typeof ath !== 'string') throw malformedClaim('ath');
  if (nonce !== undefined && typeof nonce !== 'string') throw malformedClaim('nonce');
  return { jti, htm, htu, iat, ath, nonce };
}

function malformedClaim(claim: string): AccessError {
  return new AccessError('malformed_proof_claims', { context: { claim } });
}

/** RFC 9449 §4.3 (9): equal after normalisation, or refused. */
function checkUrl(htu: string, { origin, path }: ProofRequest['url']): void {
  const url = origin + path;
  if (htu === url) return;
  const expected = normaliseUrl(url);
  const received = normaliseUrl(htu);
  if (expected !== undefined && received === expected) return;
  // Both come from the client: the log gets them only in normal form, which holds nothing but printable ASCII.
  throw new AccessError('proof_url_mismatch', {
    context: {
      expected: showUrl(expected),
      received: showUrl(received),
      hint: explainMismatch(expected, received),
    },
  });
}

/** RFC 9449 §4.3 (10); the nonce to send along where the client's own is about to end. */
function checkNonce(nonce: string | undefined, nonces: Nonces, now: number): string | undefined {
  if (nonce === undefined) throw new AccessError('missing_proof_nonce');
  const verdict = nonces.check(nonce, now);
  if (verdict === 'invalid') throw new AccessError('invalid_proof_nonce');
  return verdict === 'previous' ? nonces.issue(now) : undefined;
}
