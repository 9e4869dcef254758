import { createPublicKey, generateKeyPairSync, hash, type KeyObject, randomUUID } from 'node:crypto';
import type { JsonObject } from './json.ts';
import { type Algorithm, proofAlgorithms, type TokenAlg } from './jws.ts';
import { findAlgorithm, type PrivateKey, readPrivateKey, signCompact } from './sign.ts';

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
  // The types of Node 20 do not know it.
  AKP: (alg = '') => generateKeyPairSync(alg.toLowerCase() as 'ed25519'),
} as const satisfies Record<Algorithm['kty'], unknown>;

/** Creates a key pair; RSA has 2048 bits and takes tenths of a second. */
export function makeKeyPair(alg: TokenAlg): KeyPair {
  const { kty, crv } = findAlgorithm(alg);
  const { privateKey, publicKey } = makers[kty](crv);
  return { alg, privateKey, publicJwk: { ...publicKey.export({ format: 'jwk' }) } };
}

/** Reads a private key for proofs. Throws `TypeError` if no proof algorithm can use it. */
export function readProofKey(value: PrivateKey): KeyPair {
  const { key: privateKey, alg: named } = readPrivateKey('key', value);
  const publicJwk = { ...createPublicKey(privateKey).export({ format: 'jwk' }) };
  const alg = proofAlgorithms.find((name) => {
    const { kty, crv } = findAlgorithm(name);
    return kty === publicJwk.kty && crv === publicJwk.crv && (named === undefined || named === name);
  });
  if (alg === undefined) throw new TypeError(`key: write a key for any of ${proofAlgorithms.join(', ')}`);
  return { alg, privateKey, publicJwk };
}

/** The request that a proof is for. */
export interface ProvenRequest {
  /** Default `GET`. */
  readonly method?: string;
  /** Absolute URL; the proof omits its query and fragment (RFC 9449 §4.2). */
  readonly url: string | URL;
  /** The access token sent with the proof. */
  readonly token: string;
  /** `DPoP-Nonce` header of a response. Default: none. */
  readonly nonce?: string | undefined;
}

/** Writes header and claims of a proof with a new `jti`. `now`: seconds since the epoch. */
export function draftProof(
  { alg, publicJwk: jwk }: KeyPair,
  { method = 'GET', ...request }: ProvenRequest,
  now: number,
) {
  const { url, token, nonce } = request;
  const htu = typeof url === 'string' ? url.replace(/[?#].*$/s, '') : url.origin + url.pathname;
  const ath = hash('sha256', token, 'base64url');
  return {
    header: { typ: 'dpop+jwt', alg, jwk },
    claims: { jti: randomUUID(), htm: method, htu, iat: Math.floor(now), ath, nonce },
  };
}

/** Creates a proof (RFC 9449 §4.2). `now`: seconds since the epoch. */
export function createProof(key: KeyPair, request: ProvenRequest, now: number): string {
  const { header, claims } = draftProof(key, request, now);
  return signCompact(header, claims, key);
}
