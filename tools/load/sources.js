// Where the requests of a stream come from; made in the process that sends them, from plain data.
import { createHash, createPrivateKey } from 'node:crypto';
import { signCompact } from '../../build/core/jose/sign.js';

const alg = 'ES256'; // as cheap to make as it gets

function request(path, host, fields) {
  return `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${fields}\r\n`;
}

const makers = {
  /** The tokens in turn; without any, no credentials. */
  fixed({ path, tokens }, host) {
    const requests = tokens.map((token) => request(path, host, `Authorization: Bearer ${token}\r\n`));
    if (requests.length === 0) requests.push(request(path, host, ''));
    let next = 0;
    return () => requests[next++ % requests.length];
  },
  /** One token under a signature that is each time another, and never right. */
  forged({ path, token }, host) {
    const end = token.lastIndexOf('.') + 1;
    const signature = Buffer.from(token.slice(end), 'base64url');
    const signed = token.slice(0, end);
    signature[1] ^= 0x55; // whatever is counted further on, it is not the signature
    let count = 0;
    return () => {
      signature.writeUInt32BE(++count, 100);
      return request(path, host, `Authorization: Bearer ${signed}${signature.toString('base64url')}\r\n`);
    };
  },
  /** One token with a different unknown `kid` each time. */
  stranger({ path, token }, host) {
    const rest = token.slice(token.indexOf('.'));
    let count = 0;
    return () => {
      const header = Buffer.from(JSON.stringify({ alg: 'RS256', typ: 'at+jwt', kid: `nobody-${++count}` }));
      return request(path, host, `Authorization: Bearer ${header.toString('base64url')}${rest}\r\n`);
    };
  },
  /** Different valid tokens. */
  minted({ path, pem, kid, claims }, host) {
    const signer = { alg, privateKey: createPrivateKey(pem) };
    let count = 0;
    return () => {
      const token = signCompact({ alg, typ: 'at+jwt', kid }, { ...claims, jti: `${++count}` }, signer);
      return request(path, host, `Authorization: Bearer ${token}\r\n`);
    };
  },
  /** A bound token with a proof that is made for each request (RFC 9449 §4.2); `jti` begins the names of the proofs. */
  proven({ path, token, pem, jwk, jti = '' }, host) {
    const signer = { alg, privateKey: createPrivateKey(pem) };
    const ath = createHash('sha256').update(token).digest('base64url');
    const htu = `http://${host}${path}`;
    let count = 0;
    return () => {
      const claims = { jti: `${jti}${++count}`, htm: 'GET', htu, iat: Math.floor(Date.now() / 1000), ath };
      const proof = signCompact({ typ: 'dpop+jwt', alg, jwk }, claims, signer);
      return request(path, host, `Authorization: DPoP ${token}\r\nDPoP: ${proof}\r\n`);
    };
  },
};

/** The function that makes the next request of a source, as text. */
export function openSource({ type, ...options }, host) {
  return makers[type](options, host);
}
