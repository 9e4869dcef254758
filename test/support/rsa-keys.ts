import { createPrivateKey, createPublicKey, generateKeyPairSync, randomUUID } from 'node:crypto';
import type { SigningKey } from '../../src/dev/provider/signing-key.ts';
import { nextPlace } from './kept.ts';

/** Number of keys of a kind. Two keys of one test are taken one after another, so they differ. */
const count = 8;

/**
 * An RSA key pair of 2048 bits, another at each call; the key pairs of another kind are other ones. To make one takes more
 * than a tenth of a second of processor time, so the files of a run share them.
 */
export function takeRsaKeys(kind: 'rsa' | 'provider' | 'local-idp' = 'rsa') {
  const place = nextPlace(kind, count);
  const kept = place.read();
  if (kept !== undefined) {
    const privateKey = createPrivateKey(kept);
    return { privateKey, publicKey: createPublicKey(privateKey) };
  }
  const keys = generateKeyPairSync('rsa', { modulusLength: 2048 });
  place.write(keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
  return keys;
}

/** A key for the local identity provider. */
export async function takeSigningKey(): Promise<SigningKey> {
  return { kid: randomUUID(), privateKey: takeRsaKeys('local-idp').privateKey };
}
