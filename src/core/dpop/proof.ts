import type { KeyObject } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { refuseByFirst } from '../checks.ts';
import { type JsonObject, parseJsonObject } from '../jose/json.ts';
import { importPublicJwk } from '../jose/jwk.ts';
import {
  type Algorithm,
  type Jws,
  type KnownHeaders,
  parseJws,
  proofAlgorithms,
  readAlg,
  readAlgorithms,
  verifyJws,
} from '../jose/jws.ts';
import { Refused } from '../refused.ts';
import type { Walk } from '../walk.ts';
import type { Nonces, NonceVerdict } from './nonce.ts';
import {
  type ProofRequest,
  proofClaimChecks,
  proofHeaderChecks,
  proofKeyChecks,
  proofLifetime,
} from './proof-checks.ts';

export interface ProofVerifierOptions {
  /** `alg` values that are accepted: any of `proofAlgorithms`. Default `ES256`. */
  readonly algorithms?: readonly string[] | undefined;
  /** Nonces, one of which each proof must have. Default: none, and a proof's nonce is ignored. */
  readonly nonces?: Pick<Nonces, 'issue' | 'check'> | undefined;
  /** Public keys that are kept, at some 2 KiB each. Default 10 000. */
  readonly cachedKeys?: number | undefined;
}

/** Verifies a proof (RFC 9449 §4.3), synchronously. */
export type VerifyProof = ReturnType<typeof createProofVerifier>;
export type VerifiedProof = Exclude<ReturnType<VerifyProof>, Refused>;

/** A key that a verified access token is bound to, and the header that named it last. */
interface KnownKey {
  readonly key: KeyObject;
  readonly header: JsonObject;
  readonly headerText: string;
}

/** One of ML-DSA-87 has 11 KiB. */
const maxProofLength = 12_288;

/**
 * Creates the verifier of proofs. Whatever costs little is checked before the signature. The nonce comes after it:
 * `use_dpop_nonce` tells a client to try again, which helps only one whose proof is right in everything else.
 * Throws `TypeError` for an algorithm that cannot be accepted.
 */
export function createProofVerifier(options: ProofVerifierOptions = {}) {
  const { nonces, cachedKeys = 10_000 } = options;
  const accepted = readAlgorithms(options.algorithms ?? ['ES256'], proofAlgorithms);
  // By thumbprint, which identifies one key whatever else its jwk says; and only keys that a verified access token is
  // bound to are cached, so that no attacker can evict other keys. The length of a proof bounds each key.
  const keys = new LRUCache<string, KnownKey>({ maxSize: cachedKeys, sizeCalculation: () => 1 });

  const findKey = ({ header, headerText }: Jws, jkt: string, walk: Walk | undefined): KeyObject | Refused => {
    const jwk = header['jwk'] as JsonObject; // as the checks of the header have found
    const foreign = refuseByFirst(proofKeyChecks, { jwk, jkt }, walk);
    if (foreign !== undefined) return foreign;
    if (walk !== undefined) return walk.stage('proof_key_form', importProofKey(jwk));
    const key = keys.peek(jkt)?.key ?? importProofKey(jwk);
    if (!(key instanceof Refused)) keys.set(jkt, { key, header, headerText });
    return key;
  };

  const refuseSignature = (jws: Jws, { jkt, walk }: ProofRequest, known: KnownKey | undefined): Refused | undefined => {
    if (walk?.hasPassed(...proofHeaderChecks.map(({ id }) => id)) === false) {
      return walk.leave('blocked', 'proof_key', 'proof_key_form', 'proof_signature');
    }
    // The same string as a verified header: it names the same key.
    const key = known?.header === jws.header ? known.key : findKey(jws, jkt, walk);
    if (key instanceof Refused) {
      walk?.leave('blocked', 'proof_signature');
      return key;
    }
    const algorithm = readAlg(jws.header['alg']) as Algorithm; // as the checks of the header have found
    const refusal = verifyJws(jws, algorithm, key) ? undefined : new Refused('invalid_proof_signature');
    walk?.stage('proof_signature', refusal);
    return refusal;
  };

  return (request: ProofRequest) => {
    const { walk, now } = request;
    const known = walk === undefined ? keys.get(request.jkt) : undefined;
    const jws = readProof(request.proof, { get: (text) => (text === known?.headerText ? known.header : undefined) });
    walk?.stage('proof', jws);
    if (jws instanceof Refused) return jws;
    const badHeader = refuseByFirst(proofHeaderChecks, { header: jws.header, algorithms: accepted }, walk);
    if (badHeader !== undefined) return badHeader;
    const claims = parseJsonObject(jws.payload) ?? new Refused('malformed_proof');
    walk?.stage('proof_claims_form', claims);
    if (claims instanceof Refused) return claims;
    const badClaim = refuseByFirst(proofClaimChecks, { claims, request }, walk);
    if (badClaim !== undefined) return badClaim;
    const unsigned = refuseSignature(jws, request, known);
    if (unsigned !== undefined && walk === undefined) return unsigned;
    const { jti, iat, nonce } = claims as JsonObject & { jti: string; iat: number; nonce?: string }; // so are these
    const verdict = nonces && judgeNonce(nonce, nonces, now);
    if (nonces !== undefined) walk?.stage('proof_nonce', verdict);
    const refusal = verdict instanceof Refused ? verdict : walk?.refusal();
    if (refusal !== undefined) return refusal;
    return {
      jkt: request.jkt,
      jti,
      /** Seconds since the epoch: the last moment at which the proof would be accepted. */
      expires: iat + proofLifetime,
      /** A nonce for the client, whose own is about to end (RFC 9449 §8.2). */
      ...(verdict === 'previous' && nonces !== undefined && { nonce: nonces.issue(now) }),
      /** Nonce in the proof, required or not. */
      ...(nonce !== undefined && { sentNonce: nonce }),
    };
  };
}

function readProof(proof: string, known?: KnownHeaders): Jws | Refused {
  // RFC 9449 §4.3 (1): headers of one name reach us joined by commas, which no JWS has.
  if (proof.includes(',')) return new Refused('multiple_dpop_proofs');
  if (proof.length > maxProofLength) return new Refused('proof_too_large');
  const jws = parseJws(proof, known);
  return typeof jws === 'string' ? new Refused('malformed_proof', { context: { defect: jws } }) : jws;
}

function importProofKey(jwk: JsonObject): KeyObject | Refused {
  const key = importPublicJwk(jwk);
  if (!('why' in key)) return key;
  const { why: defect, member } = key;
  return new Refused('malformed_proof_jwk', { context: { defect, ...(member !== undefined && { member }) } });
}

/** Checks the nonce (RFC 9449 §4.3 (10)). In a dry run its form may be wrong. */
function judgeNonce(nonce: unknown, nonces: Pick<Nonces, 'check'>, now: number): NonceVerdict | Refused {
  if (typeof nonce !== 'string') return new Refused('missing_proof_nonce');
  const verdict = nonces.check(nonce, now);
  return verdict === 'invalid' ? new Refused('invalid_proof_nonce') : verdict;
}
