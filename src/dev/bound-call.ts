import { generateKeyPairSync, hash, randomUUID } from 'node:crypto';
import { thumbprint } from '../jose/jwk.ts';
import { signCompact } from '../jose/sign.ts';

const alg = 'ES256';

/** A call under the DPoP scheme, with a key that is made for it and kept by nobody. */
export interface BoundCall {
  /** Thumbprint of the key: what the access token is to be bound to. */
  readonly jkt: string;
  /**
   * Makes the proof for an access token, and the command that uses both, once. `now` in seconds since the epoch; `nonce` is
   * one that came later than the target.
   */
  write(token: string, now: number, nonce?: string): { readonly proof: string; readonly command: string };
}

/** What is called. */
export interface BoundCallTarget {
  readonly url: URL;
  readonly method: string;
  /** Nonce of the server. */
  readonly nonce: string | undefined;
}

/** Creates the call, with a new ES256 key. */
export function createBoundCall({ url, method, nonce }: BoundCallTarget): BoundCall {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { kty, crv, x, y } = publicKey.export({ format: 'jwk' });
  const jwk = { kty, crv, x, y };
  return {
    jkt: thumbprint(jwk),
    write(token, now, later = nonce) {
      // RFC 9449 §4.2: htu has neither query nor fragment.
      const htu = url.origin + url.pathname;
      const ath = hash('sha256', token, 'base64url');
      const claims = { jti: randomUUID(), htm: method, htu, iat: Math.floor(now), ath, nonce: later };
      const proof = signCompact({ typ: 'dpop+jwt', alg, jwk }, claims, { alg, privateKey });
      // RFC 9449 §7.1
      const headers = `-H 'Authorization: DPoP ${token}' -H 'DPoP: ${proof}'`;
      return { proof, command: `curl -i${methodFlag(method)} ${headers} ${quote(url.href)}` };
    },
  };
}

/** curl sends GET by itself, and waits for a body that does not come unless it knows that it asks for none. */
function methodFlag(method: string): string {
  if (method === 'GET') return '';
  return method === 'HEAD' ? ' -I' : ` -X ${method}`;
}

/** One word for a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
