import { constants } from 'node:crypto';

/** Verification rules of a JWS `alg` (RFC 7518 §3, RFC 8037 §3). */
export interface Algorithm {
  readonly kty: 'RSA' | 'EC' | 'OKP';
  /** JWK `crv` that fits; absent for RSA. */
  readonly crv?: string;
  /** Digest name for `node:crypto`; `null` where the scheme hashes by itself. */
  readonly digest: string | null;
  readonly padding?: number;
  /** RSA-PSS salt length in bytes, equal to the digest's (RFC 7518 §3.5). */
  readonly saltLength?: number;
  /** Bytes of a signature; absent for RSA, where it is the length of the modulus. */
  readonly signatureLength?: number;
}

const pkcs1 = (digest: string): Algorithm => ({ kty: 'RSA', digest, padding: constants.RSA_PKCS1_PADDING });
const pss = (digest: string, saltLength: number): Algorithm => ({
  kty: 'RSA',
  digest,
  padding: constants.RSA_PKCS1_PSS_PADDING,
  saltLength,
});
const ecdsa = (digest: string, crv: string, signatureLength: number): Algorithm => ({
  kty: 'EC',
  crv,
  digest,
  signatureLength,
});

/** `alg` of an access token: every one that can be allowed (RFC 7518 §3.1, RFC 8037 §3.1). */
export type TokenAlg =
  | 'RS256'
  | 'RS384'
  | 'RS512'
  | 'PS256'
  | 'PS384'
  | 'PS512'
  | 'ES256'
  | 'ES384'
  | 'ES512'
  | 'EdDSA';

/** `alg` of a DPoP proof: every one that can be allowed (RFC 9449 §4.3). */
export type ProofAlg = 'ES256' | 'ES384' | 'EdDSA' | 'RS256' | 'PS256';

const table = {
  RS256: pkcs1('sha256'),
  RS384: pkcs1('sha384'),
  RS512: pkcs1('sha512'),
  PS256: pss('sha256', 32),
  PS384: pss('sha384', 48),
  PS512: pss('sha512', 64),
  ES256: ecdsa('sha256', 'P-256', 64),
  ES384: ecdsa('sha384', 'P-384', 96),
  ES512: ecdsa('sha512', 'P-521', 132),
  EdDSA: { kty: 'OKP', crv: 'Ed25519', digest: null, signatureLength: 64 },
} as const satisfies Readonly<Record<TokenAlg, Algorithm>>;

export const tokenAlgs = Object.keys(table) as readonly TokenAlg[]; // the keys are the names

/** Every signature algorithm that can be allowed. HS* and none are absent on purpose. */
export const algorithms: ReadonlyMap<string, Algorithm> = new Map(Object.entries(table));

export const proofAlgorithms: readonly ProofAlg[] = ['ES256', 'ES384', 'EdDSA', 'RS256', 'PS256'];

/** The algorithm that an `alg` names, if it is among the allowed ones. Default: all of the table are. */
export function readAlg(alg: unknown, allowed: { has(alg: string): boolean } = algorithms): Algorithm | undefined {
  return typeof alg === 'string' && allowed.has(alg) ? algorithms.get(alg) : undefined;
}
