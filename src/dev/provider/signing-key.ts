import { generateKeyPair, type JsonWebKey, type KeyObject, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { signCompact } from '../../jose/sign.ts';

/** A key that signs with RS256. It lives in this process only. */
export interface SigningKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
}

const generate = promisify(generateKeyPair);

/** Makes an RSA key of 2048 bits with a random `kid`. */
export async function makeSigningKey(): Promise<SigningKey> {
  const { privateKey } = await generate('rsa', { modulusLength: 2048 });
  return { kid: randomBytes(16).toString('base64url'), privateKey };
}

/** The key as a private JWK, for the provider's own key store. */
export function exportJwk({ kid, privateKey }: SigningKey): JsonWebKey {
  return { ...privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' };
}

/** Signs claims into an access token (RFC 9068). */
export function signAccessToken({ kid, privateKey }: SigningKey, claims: Readonly<Record<string, unknown>>): string {
  const alg = 'RS256';
  return signCompact({ alg, typ: 'at+jwt', kid }, claims, { alg, privateKey });
}
