import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import type { Algorithm, TokenAlg } from '../jose/algorithms.ts';
import type { JsonObject } from '../jose/json.ts';
import { findAlgorithm } from '../jose/sign.ts';

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
