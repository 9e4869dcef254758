import type { Reason } from '../failures.ts';
import type { JsonObject } from '../jose/json.ts';
import { type Change, cutSignature, findFlaw, hour, listFlaws, spoilSignature } from './change.ts';
import { type KeyPair, makeKeyPair } from './key-ring.ts';

export interface ProofFacts {
  readonly htm: string;
  readonly htu: string;
  /** Seconds since the epoch. */
  readonly now: number;
  readonly key: KeyPair;
}

type Flaw = (facts: ProofFacts) => Change;

const claims = (members: JsonObject) => (): Change => ({ claims: members });
const header = (members: JsonObject) => (): Change => ({ header: members });
const finish = (last: (proof: string) => string) => (): Change => ({ finish: last });

const flaws = {
  // Node joins headers of one name in this way.
  multiple_dpop_proofs: finish((proof) => `${proof}, ${proof}`),
  proof_too_large: claims({ padding: 'x'.repeat(4096) }),
  malformed_proof: finish(cutSignature),
  unsupported_proof_typ: header({ typ: 'JWT' }),
  unsupported_proof_alg: header({ alg: 'HS256' }),
  unsupported_proof_header: header({ crit: ['exp'] }),
  malformed_proof_jwk: header({ jwk: undefined }),
  private_proof_jwk: ({ key }): Change => ({ header: { jwk: key.privateKey.export({ format: 'jwk' }) } }),
  malformed_proof_claims: claims({ jti: undefined }),
  proof_method_mismatch: ({ htm }) => ({ claims: { htm: `${htm}-OTHER` } }),
  proof_url_mismatch: ({ htu }) => ({ claims: { htu: `${htu}/other` } }),
  proof_too_old: ({ now }) => ({ claims: { iat: now - hour } }),
  proof_in_future: ({ now }) => ({ claims: { iat: now + hour } }),
  proof_token_mismatch: claims({ ath: 'another token' }),
  proof_key_mismatch: ({ key }) => {
    const other = makeKeyPair(key.alg);
    return { header: { jwk: other.publicJwk }, key: other };
  },
  invalid_proof_signature: finish(spoilSignature),
} as const satisfies Partial<Record<Reason, Flaw>>;

/** Defect of a DPoP proof, named by the reason of its refusal. */
export type ProofFlaw = keyof typeof flaws;

/** Every {@link ProofFlaw}, in the order of the checks: for tables of cases. */
export const proofFlaws: readonly ProofFlaw[] = listFlaws(flaws);

/** Returns the change that gives a proof this flaw; empty without a flaw. */
export function changeProof(flaw: ProofFlaw | undefined, facts: ProofFacts): Change {
  return flaw === undefined ? {} : findFlaw(flaws, flaw)(facts);
}
