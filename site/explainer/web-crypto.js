// The part of node:crypto that an explanation calls. WebCrypto verifies signatures only asynchronously: `verify` reports a
// signature as invalid and notes it, `settleSignatures` verifies what was noted, and the next run gets the results.
import { hkdf } from '@noble/hashes/hkdf.js';
import { hmac } from '@noble/hashes/hmac.js';
import { sha256, sha384, sha512 } from '@noble/hashes/sha2.js';

const hashes = { sha256, sha384, sha512 };
const bytesOf = (data) => (typeof data === 'string' ? Buffer.from(data) : data);
const encode = (bytes, encoding) =>
  encoding === undefined || encoding === 'buffer' ? Buffer.from(bytes) : Buffer.from(bytes).toString(encoding);

const results = new Map();
let noted = new Map();

export const constants = { RSA_PKCS1_PADDING: 1, RSA_PKCS1_PSS_PADDING: 6 };

export function hash(algorithm, data, encoding = 'hex') {
  return encode(hashes[algorithm](bytesOf(data)), encoding);
}

const collect = (finish) => {
  const parts = [];
  const object = {
    update(data) {
      parts.push(bytesOf(data));
      return object;
    },
    digest: (encoding) => encode(finish(Buffer.concat(parts)), encoding),
  };
  return object;
};
export const createHash = (algorithm) => collect((data) => hashes[algorithm](data));
export const createHmac = (algorithm, key) => collect((data) => hmac(hashes[algorithm], bytesOf(key), data));
export const hkdfSync = (algorithm, key, salt, info, length) =>
  hkdf(hashes[algorithm], bytesOf(key), bytesOf(salt), bytesOf(info), length).buffer;
export const randomInt = (bound) => randomBytes(6).readUIntBE(0, 6) % bound;
export const randomBytes = (length) => Buffer.from(crypto.getRandomValues(new Uint8Array(length)));
export const randomUUID = () => crypto.randomUUID();
export const timingSafeEqual = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)) === 0;

/** A public key as its JWK. Throws for one that WebCrypto did not import: it is noted like a signature. */
export function createPublicKey({ key }) {
  const id = JSON.stringify(key);
  if (key.kty === 'AKP' || results.get(id) === false) throw new TypeError('the key is invalid');
  if (!results.has(id)) noted.set(id, { jwk: key });
  const modulusLength = key.n === undefined ? undefined : Buffer.from(key.n, 'base64url').length * 8;
  return { type: 'public', jwk: key, asymmetricKeyDetails: { modulusLength }, export: () => key };
}

export function verify(digest, data, { key, padding, saltLength }, signature) {
  const id = JSON.stringify([digest, padding, key.jwk, hash('sha256', data), hash('sha256', signature)]);
  if (!results.has(id)) noted.set(id, { digest, data, jwk: key.jwk, padding, saltLength, signature });
  return results.get(id) === true;
}

/** Imports the keys and verifies the signatures that were noted. Returns their number. */
export async function settleSignatures() {
  const open = noted;
  noted = new Map();
  for (const [id, about] of open) results.set(id, await verifySignature(about).catch(() => false));
  return open.size;
}

async function verifySignature({ digest, data, jwk, padding, saltLength, signature }) {
  const hashName = digest?.replace('sha', 'SHA-') ?? 'SHA-256';
  const { kty, crv } = jwk;
  const [algorithm, parameters] = {
    RSA:
      padding === constants.RSA_PKCS1_PSS_PADDING
        ? [
            { name: 'RSA-PSS', hash: hashName },
            { name: 'RSA-PSS', saltLength },
          ]
        : [{ name: 'RSASSA-PKCS1-v1_5', hash: hashName }, { name: 'RSASSA-PKCS1-v1_5' }],
    EC: [
      { name: 'ECDSA', namedCurve: crv },
      { name: 'ECDSA', hash: hashName },
    ],
    OKP: [{ name: 'Ed25519' }, { name: 'Ed25519' }],
  }[kty];
  const key = await crypto.subtle.importKey('jwk', jwk, algorithm, false, ['verify']);
  if (signature === undefined) return true;
  return crypto.subtle.verify(parameters, key, signature, data);
}

const absent = () => {
  throw new Error('not in a browser');
};
export const sign = absent;
export const createVerify = absent;
export const createPrivateKey = absent;
export const createSecretKey = absent;
export const generateKeyPairSync = absent;
export class X509Certificate {
  constructor() {
    absent();
  }
}
