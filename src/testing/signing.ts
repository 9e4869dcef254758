import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import type { Algorithm } from '../jose/algorithms.ts';
import type { JsonObject } from '../jose/json.ts';
import { findAlgorithm } from '../jose/sign.ts';

/** `alg` of an access token: every one that a resource server can allow. */
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

/** A key pair, made at run time, for one `alg`. */
export interface KeyPair {
  readonly alg: TokenAlg;
  readonly privateKey: KeyObject;
  /** Only key material: no `kid`, `use` or `alg`. */
  readonly publicJwk: JsonObject;
}

const makers = {
  RSA: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  EC: (namedCurve = '') => generateKeyPairSync('ec', { namedCurve }),
  OKP: () => generateKeyPairSync('ed25519'),
} as const satisfies Record<Algorithm['kty'], unknown>;

/** Makes a key pair; RSA has 2048 bits and takes tenths of a second. */
export function makeKeyPair(alg: TokenAlg): KeyPair {
  const { kty, crv } = findAlgorithm(alg);
  const { privateKey, publicKey } = makers[kty](crv);
  return { alg, privateKey, publicJwk: { ...publicKey.export({ format: 'jwk' }) } };
}
