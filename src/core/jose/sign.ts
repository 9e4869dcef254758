import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import { attempt } from '../attempt.ts';
import type { JsonObject } from './json.ts';
import { type Algorithm, algorithms } from './jws.ts';

export interface Signer {
  readonly alg: string;
  readonly privateKey: KeyObject;
}

/** The row of an `alg`. Throws `TypeError` for one that is not known. */
export function findAlgorithm(alg: string): Algorithm {
  const algorithm = algorithms.get(alg);
  if (algorithm === undefined) throw new TypeError(`alg: write any of ${[...algorithms.keys()].join(', ')}`);
  return algorithm;
}

/** Signs header and claims into a compact JWS (RFC 7515 §7.1); members that are `undefined` are left out. */
export function signCompact(header: JsonObject, claims: JsonObject, signer: Signer): string {
  return writeCompact({
    header: JSON.stringify(header),
    payload: JSON.stringify(claims),
    sign: (input) => signBytes(input, signer),
  });
}

export function writeCompact(parts: {
  readonly header: string | Uint8Array;
  readonly payload: string | Uint8Array;
  readonly sign: (input: Buffer) => Buffer;
}): string {
  const input = [parts.header, parts.payload].map((part) => Buffer.from(part).toString('base64url')).join('.');
  return `${input}.${parts.sign(Buffer.from(input)).toString('base64url')}`;
}

export function signBytes(input: Uint8Array, { alg, privateKey: key }: Signer): Buffer {
  const { digest, padding, saltLength } = findAlgorithm(alg);
  return sign(digest, input, { key, dsaEncoding: 'ieee-p1363', padding, saltLength });
}

/** Private key of this resource server: PEM, or a JWK (RFC 7517 §4). */
export type PrivateKey =
  | string
  | {
      /** Family of the key, such as `EC`. */
      readonly kty?: string;
      /** Name of the key in headers of JWTs. */
      readonly kid?: string;
      /** Algorithm of the key. */
      readonly alg?: string;
      /** The other members of the JWK. */
      readonly [member: string]: unknown;
    };

export type ReadPrivateKey = ReturnType<typeof readPrivateKey>;

const minModulusBits = 2048;

/** Reads a private key. Throws `TypeError`, which does not repeat the key, for any other value and for RSA under 2048 bits. */
export function readPrivateKey(name: string, value: PrivateKey) {
  // An error could describe the key.
  const key = attempt(() => createPrivateKey(typeof value === 'string' ? value : { key: value, format: 'jwk' }));
  const { modulusLength = minModulusBits } = key?.asymmetricKeyDetails ?? {};
  if (key === undefined || modulusLength < minModulusBits) {
    throw new TypeError(`${name}: write a private key in PEM or as a JWK; RSA needs ${minModulusBits} bits`);
  }
  const { kid, alg } = typeof value === 'string' ? {} : value;
  return { key, kid, alg };
}
