import { generateKeyPairSync, hash, randomUUID } from 'node:crypto';
import { thumbprint } from '../jose/jwk.ts';
import { signCompact } from '../jose/sign.ts';

const alg = 'ES256';

/** DPoP request with a new key that only this object has. */
export interface BoundRequest {
  readonly jkt: string;
  /**
   * Creates a proof for an access token, and the command that uses both once. `now` in seconds since the epoch; `nonce`
   * replaces the nonce of the target.
   */
  write(token: string, now: number, nonce?: string): { readonly proof: string; readonly command: string };
}

export interface BoundRequestTarget {
  readonly url: URL;
  readonly method: string;
  readonly nonce: string | undefined;
}

export function createBoundRequest({ url, method, nonce }: BoundRequestTarget): BoundRequest {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { kty, crv, x, y } = publicKey.export({ format: 'jwk' });
  const jwk = { kty, crv, x, y };
  return {
    jkt: thumbprint(jwk),
    write(token, now, currentNonce = nonce) {
      // RFC 9449 §4.2: htu has neither query nor fragment.
      const htu = url.origin + url.pathname;
      const ath = hash('sha256', token, 'base64url');
      const claims = { jti: randomUUID(), htm: method, htu, iat: Math.floor(now), ath, nonce: currentNonce };
      const proof = signCompact({ typ: 'dpop+jwt', alg, jwk }, claims, { alg, privateKey });
      // RFC 9449 §7.1
      const headers = `-H 'Authorization: DPoP ${token}' -H 'DPoP: ${proof}'`;
      return { proof, command: `curl -i${methodFlag(method)} ${headers} ${quote(url.href)}` };
    },
  };
}

/** GET is the default of curl. `-X HEAD` would wait for a body. */
export function methodFlag(method: string): string {
  if (method === 'GET') return '';
  return method === 'HEAD' ? ' -I' : ` -X ${method}`;
}

/** Quotes a word for a POSIX shell. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
