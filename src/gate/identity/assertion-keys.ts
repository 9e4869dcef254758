import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { thumbprint } from '../../jose/jwk.ts';
import type { Signer } from '../../jose/sign.ts';

/** PEM files of assertion keys, as read: they reach workers in this form. */
export interface AssertionKeyFiles {
  readonly signing: KeyFile | undefined;
  /** Keys of which only the public part is served. */
  readonly published: readonly KeyFile[];
}

export interface KeyFile {
  readonly setting: string;
  readonly pem: string;
}

export interface AssertionKeys {
  readonly signer: AssertionSigner | undefined;
  /** The public keys as a JWK set (RFC 7517 §5), each once. */
  readonly jwks: string;
}

export interface AssertionSigner extends Signer {
  /** RFC 7638 thumbprint of the public key. */
  readonly kid: string;
}

/** A key that cannot be used. The message names the setting, never the key. */
export class AssertionKeyError extends Error {
  override readonly name = 'AssertionKeyError';
}

const algorithmsOfCurves: Readonly<Record<string, string>> = { 'P-256': 'ES256', Ed25519: 'EdDSA' };

/** Imports the keys. Throws `AssertionKeyError` if one of them cannot be used. */
export function importAssertionKeys({ signing, published }: AssertionKeyFiles): AssertionKeys {
  const own = signing === undefined ? undefined : importSigner(signing);
  const all = [...(own === undefined ? [] : [own.jwk]), ...published.map(importPublished)];
  const keys = new Map(all.map((jwk) => [jwk.kid, jwk]));
  return { signer: own?.signer, jwks: JSON.stringify({ keys: [...keys.values()] }) };
}

function importSigner({ setting, pem }: KeyFile) {
  const privateKey = importPem(setting, () => createPrivateKey(pem), 'a private key');
  const jwk = describeKey(setting, createPublicKey(privateKey));
  return { jwk, signer: { alg: jwk.alg, kid: jwk.kid, privateKey } };
}

function importPublished({ setting, pem }: KeyFile) {
  return describeKey(
    setting,
    importPem(setting, () => createPublicKey(pem), 'a key'),
  );
}

function importPem(setting: string, read: () => KeyObject, kind: string): KeyObject {
  try {
    return read();
  } catch {
    // The error of OpenSSL can quote the file.
    throw new AssertionKeyError(
      `${setting} does not name ${kind} in PEM. Name a PEM file with a P-256 or Ed25519 key.`,
    );
  }
}

function describeKey(setting: string, key: KeyObject) {
  const isUsable = key.asymmetricKeyType === 'ec' || key.asymmetricKeyType === 'ed25519';
  const { kty = '', crv = '', x = '', y } = isUsable ? key.export({ format: 'jwk' }) : {};
  const alg = algorithmsOfCurves[crv];
  if (alg === undefined) {
    throw new AssertionKeyError(`${setting} names a key of another kind. Name a P-256 or Ed25519 key.`);
  }
  const jwk = { kty, crv, x, ...(y !== undefined && { y }) };
  return { ...jwk, kid: thumbprint(jwk), alg, use: 'sig' };
}
