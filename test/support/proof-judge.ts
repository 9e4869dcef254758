import { createProofVerifier, type VerifiedProof, type VerifyProof } from '../../src/core/dpop/proof.ts';
import type { ProofRequest } from '../../src/core/dpop/proof-checks.ts';
import { Refused } from '../../src/core/refused.ts';
import {
  encode,
  hashToken,
  makeProofKey,
  mintProof,
  type ProofChanges,
  type ProofKey,
  thumbprintOf,
} from './proofs.ts';

/** The time at which the proofs of the tests are validated, in seconds. */
export const now = 1_700_000_000;
export const token = `${encode('{"alg":"RS256"}')}.${encode('{"sub":"someone"}')}.c2lnbmF0dXJl`;
export const url = { origin: 'https://api.example.com', path: '/things' };
export const key = makeProofKey();
export const otherKey = makeProofKey();
export const keys = {
  ES384: makeProofKey('ES384'),
  EdDSA: makeProofKey('EdDSA'),
  RS256: makeProofKey('RS256'),
  RS1024: makeProofKey('RS1024'),
  'P-521': makeProofKey('P-521'),
};
export const goodClaims = {
  jti: 'the-first',
  htm: 'GET',
  htu: 'https://api.example.com/things',
  iat: now,
  ath: hashToken(token),
};
export const allAlgorithms = ['ES256', 'ES384', 'EdDSA', 'RS256', 'PS256'];
export const verify = createProofVerifier();
export const verifyAll = createProofVerifier({ algorithms: allAlgorithms });

const outcomeOf = (proof: string, request: Partial<ProofRequest> = {}, verifier: VerifyProof = verify) =>
  verifier({ proof, method: 'GET', url, ath: hashToken(token), jkt: thumbprintOf(key.jwk), now, ...request });

export function refusalOf(proof: string, request?: Partial<ProofRequest>, verifier?: VerifyProof) {
  const outcome = outcomeOf(proof, request, verifier);
  return outcome instanceof Refused ? outcome : undefined;
}

/** The proof, which is not refused. */
export function accept(proof: string, request?: Partial<ProofRequest>, verifier?: VerifyProof): VerifiedProof {
  const outcome = outcomeOf(proof, request, verifier);
  if (outcome instanceof Refused) throw outcome;
  return outcome;
}

/** The reason of the refusal, or `accepted`. */
export function judge(proof: string, request?: Partial<ProofRequest>, verifier?: VerifyProof): string {
  return refusalOf(proof, request, verifier)?.reason ?? 'accepted';
}

export const mint = (changes: ProofChanges = {}): string => mintProof(goodClaims, { key, ...changes });

export interface Case {
  readonly changes: ProofChanges;
  readonly request?: Partial<ProofRequest>;
}

export const change = (changes: ProofChanges, request: Partial<ProofRequest> = {}): Case => ({ changes, request });
export const header = (members: Readonly<Record<string, unknown>>): Case => change({ header: members });
export const claims = (members: Readonly<Record<string, unknown>>): Case => change({ claims: members });
export const jwk = (members: Readonly<Record<string, unknown>>): Case => {
  const changed = { ...key.jwk, ...members };
  return change({ header: { jwk: changed } }, { jkt: thumbprintOf(changed) });
};
export const signedBy = (alg: string, signer: ProofKey, members: Readonly<Record<string, unknown>> = {}): Case =>
  change({ key: signer, header: { alg, ...members } }, { jkt: thumbprintOf(signer.jwk) });
export const judgeCase = ({ changes, request }: Case, verifier: VerifyProof): string =>
  judge(mint(changes), request, verifier);
