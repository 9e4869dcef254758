import { thumbprint } from '../core/jose/jwk.ts';
import { createProof, makeKeyPair } from '../core/jose/signed-proof.ts';

type Target = Readonly<{ url: URL; method: string; nonce: string | undefined }>;

export function createBoundRequest({ url, method, nonce }: Target) {
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
      return { proof, command: writeCurl(method, url, { Authorization: `DPoP ${token}`, DPoP: proof }) };
    },
  };
}

/** Writes a command of curl. Its values are of one line. */
export function writeCurl(
  method: string,
  url: URL,
  headers: Readonly<Record<string, string>>,
  separator = ' ',
): string {
  const lines = Object.entries(headers).map(([name, value]) => `-H '${name}: ${value}'`);
  return [`curl -i${methodFlag(method)}`, ...lines, quote(url.href)].join(separator);
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
