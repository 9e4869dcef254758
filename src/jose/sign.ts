import { type KeyObject, sign } from 'node:crypto';
import { type Algorithm, algorithms } from './algorithms.ts';
import type { JsonObject } from './json.ts';

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

export interface CompactParts {
  readonly header: string | Uint8Array;
  readonly payload: string | Uint8Array;
  readonly sign: (input: Buffer) => Buffer;
}

export function writeCompact({ header, payload, sign: signInput }: CompactParts): string {
  const input = `${encode(header)}.${encode(payload)}`;
  return `${input}.${signInput(Buffer.from(input)).toString('base64url')}`;
}

/** The signature of these bytes, as `alg` makes it. */
export function signBytes(input: Uint8Array, { alg, privateKey: key }: Signer): Buffer {
  const { digest, padding, saltLength } = findAlgorithm(alg);
  return sign(digest, input, { key, dsaEncoding: 'ieee-p1363', padding, saltLength });
}

function encode(part: string | Uint8Array): string {
  return Buffer.from(part).toString('base64url');
}
