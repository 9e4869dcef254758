import { createPublicKey, generateKeyPair, type JsonWebKey, type KeyObject, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { signCompact } from '../../core/jose/sign.ts';

/** RS256 key. It never leaves this process. */
export type SigningKey = Readonly<{ kid: string; privateKey: KeyObject }>;

const generate = promisify(generateKeyPair);

/** Generates an RSA key of 2048 bits with a random `kid`. */
export async function makeSigningKey(): Promise<SigningKey> {
  const { privateKey } = await generate('rsa', { modulusLength: 2048 });
  return { kid: randomBytes(16).toString('base64url'), privateKey };
}

export function exportJwk({ kid, privateKey }: SigningKey, key = privateKey): JsonWebKey {
  return { ...key.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' };
}

export function exportPublicJwk(key: SigningKey): JsonWebKey {
  return exportJwk(key, createPublicKey(key.privateKey));
}

/** Signs claims into an access token (RFC 9068). */
export function signAccessToken(
  { kid, privateKey }: SigningKey,
  claims: Readonly<Record<string, unknown>>,
  typ: 'at+jwt' | 'logout+jwt' = 'at+jwt',
): string {
  const alg = 'RS256';
  return signCompact({ alg, typ, kid }, claims, { alg, privateKey });
}
