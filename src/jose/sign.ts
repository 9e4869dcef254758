import { type KeyObject, sign } from 'node:crypto';
import { type Algorithm, algorithms } from './algorithms.ts';
import type { JsonObject } from './json.ts';

/** A private key, and the `alg` that it signs with. */
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
export function signCompact(header: JsonObject, claims: JsonObject, { alg, privateKey: key }: Signer): string {
  const { digest, padding, saltLength } = findAlgorithm(alg);
  const input = `${encodeJson(header)}.${encodeJson(claims)}`;
  const signature = sign(digest, Buffer.from(input), { key, dsaEncoding: 'ieee-p1363', padding, saltLength });
  return `${input}.${signature.toString('base64url')}`;
}

function encodeJson(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
