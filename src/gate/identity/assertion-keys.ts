import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { thumbprint } from '../../core/jose/jwk.ts';
import { readRegularFile } from '../../server/lifecycle/file.ts';
import type { Settings } from '../../server/settings/settings.ts';
import { RulesError } from '../match/rules.ts';

/** PEM files of assertion keys, as read. */
export type AssertionKeyFiles = ReturnType<typeof readAssertionKeys>;

type KeyFile = Readonly<Record<'setting' | 'pem', string>>;

export type AssertionSigner = NonNullable<ReturnType<typeof importAssertionKeys>['signer']>;

const maxBytes = 64 * 1024;
const algorithmsOfCurves: Readonly<Record<string, string>> = { 'P-256': 'ES256', Ed25519: 'EdDSA' };

/** Reads the PEM files of assertion keys. Throws `RulesError` for an unreadable file. */
export function readAssertionKeys({ assertionKey, assertionKeysPublished }: Settings) {
  const read = (setting: string, path: string): KeyFile => {
    try {
      return { setting, pem: readRegularFile(path, maxBytes).toString('latin1') };
    } catch (cause) {
      throw new RulesError(`${setting}: the file cannot be read. Name a readable PEM file.`, { cause });
    }
  };
  return {
    signing: assertionKey === '' ? undefined : read('ASSERTION_KEY', assertionKey),
    /** Keys of which only the public part is served. */
    published: assertionKeysPublished.map((path) => read('ASSERTION_KEYS_PUBLISHED', path)),
  };
}

/** Imports the keys, and writes the public ones as a JWK set (RFC 7517 §5). Throws `RulesError` for an unusable key. */
export function importAssertionKeys({ signing, published }: AssertionKeyFiles) {
  const privateKey = signing && importPem(signing, createPrivateKey, 'a private key');
  const own = signing && privateKey && describeKey(signing, createPublicKey(privateKey));
  const others = published.map((file) => describeKey(file, importPem(file, createPublicKey, 'a key')));
  const keys = new Map([...(own === undefined ? [] : [own]), ...others].map((jwk) => [jwk.kid, jwk]));
  return {
    signer: own && privateKey && { alg: own.alg, kid: own.kid, privateKey },
    jwks: JSON.stringify({ keys: [...keys.values()] }),
  };
}

function importPem({ setting, pem }: KeyFile, read: (pem: string) => KeyObject, kind: string): KeyObject {
  try {
    return read(pem);
  } catch {
    // The error of OpenSSL can quote the file.
    throw new RulesError(`${setting} does not name ${kind} in PEM. Name a PEM file with a P-256 or Ed25519 key.`);
  }
}

function describeKey({ setting }: KeyFile, key: KeyObject) {
  const isUsable = key.asymmetricKeyType === 'ec' || key.asymmetricKeyType === 'ed25519';
  const { kty = '', crv = '', x = '', y } = isUsable ? key.export({ format: 'jwk' }) : {};
  const alg = algorithmsOfCurves[crv];
  if (alg === undefined) {
    throw new RulesError(`${setting} names a key of another kind. Name a P-256 or Ed25519 key.`);
  }
  const jwk = { kty, crv, x, ...(y !== undefined && { y }) };
  return { ...jwk, kid: thumbprint(jwk), alg, use: 'sig' };
}
