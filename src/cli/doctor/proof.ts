import { createPrivateKey, createPublicKey, hash, type KeyObject, randomUUID } from 'node:crypto';
import { signCompact } from '../../jose/sign.ts';

/** What a proof is made for. */
export interface ProofTarget {
  readonly url: URL;
  readonly token: string;
  readonly key: KeyObject;
  readonly nonce: string | undefined;
}

const algs: ReadonlyMap<unknown, string> = new Map([
  ['P-256', 'ES256'],
  ['P-384', 'ES384'],
  ['Ed25519', 'EdDSA'],
]);

/** Reads a private key from PEM or a JWK. Throws for what is neither, or is of a type that proofs are not made with. */
export function readProofKey(text: string): KeyObject {
  const key = text.trimStart().startsWith('{')
    ? createPrivateKey({ key: JSON.parse(text), format: 'jwk' })
    : createPrivateKey(text);
  if (!algs.has(createPublicKey(key).export({ format: 'jwk' }).crv)) throw new TypeError('The key is of another type.');
  return key;
}

/** Makes a proof for a GET (RFC 9449 §4.2). */
export function makeProof({ url, token, key, nonce }: ProofTarget): string {
  const { kty, crv, x, y } = createPublicKey(key).export({ format: 'jwk' });
  const alg = algs.get(crv) ?? 'ES256'; // checked when the key was read
  const claims = {
    jti: randomUUID(),
    htm: 'GET',
    htu: url.origin + url.pathname,
    iat: Math.floor(Date.now() / 1000),
    ath: hash('sha256', token, 'base64url'),
    nonce,
  };
  return signCompact({ typ: 'dpop+jwt', alg, jwk: { kty, crv, x, y } }, claims, { alg, privateKey: key });
}
