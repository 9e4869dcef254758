// A DPoP client (RFC 9449) for Node and browsers: a key, a proof for each request, and the nonces of each server.
const encode = (bytes) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '');
const encodeText = (text) => encode(new TextEncoder().encode(text));
/** SHA-256 in base64url, as PKCE and `ath` have it. */
export const hash = async (text) => encode(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));

/** Creates a key that cannot be exported, and a `fetch` that proves it: `dpopFetch(url, { token, ...init })`. */
export async function createDpopFetch() {
  const { publicKey, privateKey } = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, [
    'sign',
  ]);
  const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', publicKey);
  const header = encodeText(JSON.stringify({ typ: 'dpop+jwt', alg: 'ES256', jwk: { kty, crv, x, y } }));
  /** The last nonce of each server. */
  const nonces = new Map();

  async function prove(method, { origin, pathname }, token) {
    const claims = {
      jti: crypto.randomUUID(),
      htm: method,
      htu: `${origin}${pathname}`,
      iat: Math.floor(Date.now() / 1000),
      ath: token && (await hash(token)),
      nonce: nonces.get(origin),
    };
    const input = `${header}.${encodeText(JSON.stringify(claims))}`;
    const algorithm = { name: 'ECDSA', hash: 'SHA-256' };
    return `${input}.${encode(await crypto.subtle.sign(algorithm, privateKey, new TextEncoder().encode(input)))}`;
  }

  return async function dpopFetch(address, { token, method = 'GET', headers, ...init } = {}) {
    const url = new URL(address);
    for (let isRepeated = false; ; isRepeated = true) {
      const all = new Headers(headers);
      all.set('DPoP', await prove(method, url, token));
      if (token) all.set('Authorization', `DPoP ${token}`);
      const response = await fetch(url, { ...init, method, headers: all });
      const nonce = response.headers.get('DPoP-Nonce');
      if (nonce) nonces.set(url.origin, nonce);
      // An API says it in the challenge (§9), a token endpoint in the body (§8).
      const challenge = response.headers.get('WWW-Authenticate') ?? '';
      const error = response.status === 400 ? await response.clone().text() : challenge;
      if (isRepeated || !nonce || !error.includes('use_dpop_nonce')) return response;
    }
  };
}
