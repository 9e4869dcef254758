import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { type Algorithm, algorithms, type TokenAlg } from '../jose/algorithms.ts';
import type { JsonObject } from '../jose/json.ts';

/** A key pair, made at run time, for one `alg`. */
export interface KeyPair {
  readonly alg: TokenAlg;
  readonly privateKey: KeyObject;
  /** Key material alone: no `kid`, `use` or `alg`. */
  readonly publicJwk: JsonObject;
}

const makers = {
  RSA: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  EC: (namedCurve = '') => generateKeyPairSync('ec', { namedCurve }),
  OKP: () => generateKeyPairSync('ed25519'),
} as const satisfies Record<Algorithm['kty'], unknown>;

/** The row of an `alg`. Throws `TypeError` for one that is not known. */
export function findAlgorithm(alg: string): Algorithm {
  const algorithm = algorithms.get(alg);
  if (algorithm === undefined) throw new TypeError(`alg: write any of ${[...algorithms.keys()].join(', ')}`);
  return algorithm;
}

/** Makes a key pair; RSA has 2048 bits and takes tenths of a second. */
export function makeKeyPair(alg: TokenAlg): KeyPair {
  const { kty, crv } = findAlgorithm(alg);
  const { privateKey, publicKey } = makers[kty](crv);
  return { alg, privateKey, publicJwk: { ...publicKey.export({ format: 'jwk' }) } };
}

/** Signs header and claims into a compact JWS (RFC 7515 §7.1); members that are `undefined` are left out. */
export function signCompact(header: JsonObject, claims: JsonObject, { alg, privateKey: key }: KeyPair): string {
  const { digest, padding, saltLength } = findAlgorithm(alg);
  const input = `${encodeJson(header)}.${encodeJson(claims)}`;
  const signature = sign(digest, Buffer.from(input), { key, dsaEncoding: 'ieee-p1363', padding, saltLength });
  return `${input}.${signature.toString('base64url')}`;
}

function encodeJson(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
