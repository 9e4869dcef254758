import { thumbprint } from '../core/jose/jwk.ts';
import { createProof, makeKeyPair } from '../core/jose/signed-proof.ts';

export interface BoundRequestTarget {
  readonly url: URL;
  readonly method: string;
  readonly nonce: string | undefined;
}

export function createBoundRequest({ url, method, nonce }: BoundRequestTarget) {
  const key = makeKeyPair('ES256');
  return {
    jkt: thumbprint(key.publicJwk),
    /**
     * Creates a proof for an access token, and the command that uses both once. `now` in seconds since the epoch; `nonce`
     * replaces the nonce of the target.
     */
    write(token: string, now: number, currentNonce = nonce): { readonly proof: string; readonly command: string } {
      const proof = createProof(key, { method, url, token, nonce: currentNonce }, now);
      // RFC 9449 §7.1
      const headers = `-H 'Authorization: DPoP ${token}' -H 'DPoP: ${proof}'`;
      return { proof, command: `curl -i${methodFlag(method)} ${headers} ${quote(url.href)}` };
    },
  };
}

export type BoundRequest = ReturnType<typeof createBoundRequest>;

/** GET is the default of curl. `-X HEAD` would wait for a body. */
export function methodFlag(method: string): string {
  if (method === 'GET') return '';
  return method === 'HEAD' ? ' -I' : ` -X ${method}`;
}

/** Quotes a word for a POSIX shell. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
