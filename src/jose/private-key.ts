import { createPrivateKey, type KeyObject } from 'node:crypto';

/** Private key of this resource server: PEM, or a JWK (RFC 7517 §4) whose `kid` and `alg` are read. */
export type PrivateKey =
  | string
  | { readonly kty?: string; readonly kid?: string; readonly alg?: string; readonly [member: string]: unknown };

export interface ReadPrivateKey {
  readonly key: KeyObject;
  readonly kid: string | undefined;
  readonly alg: string | undefined;
}

const minModulusBits = 2048;

/** Reads a private key. Throws `TypeError`, which does not repeat the key, for any other value and for RSA under 2048 bits. */
export function readPrivateKey(name: string, value: PrivateKey): ReadPrivateKey {
  const key = importKey(value);
  const { modulusLength = minModulusBits } = key?.asymmetricKeyDetails ?? {};
  if (key === undefined || modulusLength < minModulusBits) {
    throw new TypeError(`${name}: write a private key in PEM or as a JWK; RSA needs ${minModulusBits} bits`);
  }
  const { kid, alg } = typeof value === 'string' ? {} : value;
  return { key, kid, alg };
}

function importKey(value: PrivateKey): KeyObject | undefined {
  try {
    return typeof value === 'string' ? createPrivateKey(value) : createPrivateKey({ key: value, format: 'jwk' });
  } catch {
    return undefined; // its message could describe the key
  }
}
