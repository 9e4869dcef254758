import { createPrivateKey, generateKeyPairSync, type JsonWebKey, KeyObject, sign } from 'node:crypto';
import { calculateJwkThumbprint } from 'jose';
import { describe, expect, it } from 'vitest';
import { importJwk, importPublicJwk, thumbprint } from '../../src/keys/jwk.ts';
import { algorithms } from '../../src/token/algorithms.ts';
import { verifyJws } from '../../src/token/jws.ts';

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const pairs = {
  RSA: rsa,
  'P-256': generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  'P-384': generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  'P-521': generateKeyPairSync('ec', { namedCurve: 'P-521' }),
  Ed25519: generateKeyPairSync('ed25519'),
} as const;
type Kind = keyof typeof pairs;

const publicJwk = (kind: Kind): JsonWebKey => pairs[kind].publicKey.export({ format: 'jwk' });
const rsaJwk = publicJwk('RSA');
const ecJwk = publicJwk('P-256');
const okpJwk = publicJwk('Ed25519');
const base64url = (...octets: number[]): string => Buffer.from(octets).toString('base64url');
const modulus = (bytes: number, first = 0xff): string => {
  const octets = Buffer.alloc(bytes, 0xff);
  octets[0] = first;
  return octets.toString('base64url');
};

describe('importPublicJwk', () => {
  it.each(Object.keys(pairs) as Kind[])('%s → the public key', (kind) => {
    const key = importPublicJwk(publicJwk(kind));
    expect(key).toBeInstanceOf(KeyObject);
    expect(key).toSatisfy((each: KeyObject) => each.type === 'public' && each.equals(pairs[kind].publicKey));
  });

  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'malformed'],
    ['null', null, 'malformed'],
    ['an array', [rsaJwk], 'malformed'],
    ['a string', JSON.stringify(rsaJwk), 'malformed'],
    ['a secret', { kty: 'oct', k: 'c2VjcmV0' }, 'symmetric'],
    ['no kty', { n: rsaJwk.n, e: rsaJwk.e }, 'unsupported_kty'],
    ['kty in lower case', { ...rsaJwk, kty: 'rsa' }, 'unsupported_kty'],
    ['kty that is no string', { ...rsaJwk, kty: ['RSA'] }, 'unsupported_kty'],
    ['kty from the prototype', { ...rsaJwk, kty: 'constructor' }, 'unsupported_kty'],
    ['RSA without n', { kty: 'RSA', e: 'AQAB' }, 'malformed'],
    ['RSA without e', { kty: 'RSA', n: rsaJwk.n }, 'malformed'],
    ['RSA with n as a number', { ...rsaJwk, n: 7 }, 'malformed'],
    ['RSA with padding in n', { ...rsaJwk, n: `${rsaJwk.n}==` }, 'malformed'],
    ['RSA with plain base64 in e', { ...rsaJwk, e: 'A+AB' }, 'malformed'],
    ['RSA with stray bits in e', { ...rsaJwk, e: 'Ax' }, 'malformed'],
    ['RSA with a zero before n', { ...rsaJwk, n: modulus(257, 0) }, 'malformed'],
    ['RSA with a zero before e', { ...rsaJwk, e: base64url(0, 1, 0, 1) }, 'malformed'],
    ['RSA of 2047 bits', { ...rsaJwk, n: modulus(256, 0x7f) }, 'rsa_too_small'],
    ['RSA of 1024 bits', { ...rsaJwk, n: modulus(128) }, 'rsa_too_small'],
    ['RSA of 16385 bits', { ...rsaJwk, n: modulus(2049, 0x01) }, 'rsa_too_large'],
    ['RSA with e = 0', { ...rsaJwk, e: base64url(0) }, 'malformed'],
    ['RSA with e = 1', { ...rsaJwk, e: base64url(1) }, 'bad_exponent'],
    ['RSA with e = 2', { ...rsaJwk, e: base64url(2) }, 'bad_exponent'],
    ['RSA with e = 65536', { ...rsaJwk, e: base64url(1, 0, 0) }, 'bad_exponent'],
    ['RSA with e of 65 bits', { ...rsaJwk, e: base64url(1, 0, 0, 0, 0, 0, 0, 0, 1) }, 'bad_exponent'],
    ['EC without crv', { ...ecJwk, crv: undefined }, 'unsupported_crv'],
    ['EC on secp256k1', { ...ecJwk, crv: 'secp256k1' }, 'unsupported_crv'],
    ['EC on Ed25519', { ...ecJwk, crv: 'Ed25519' }, 'unsupported_crv'],
    ['EC without y', { ...ecJwk, y: undefined }, 'malformed'],
    ['EC with a short x', { ...ecJwk, x: base64url(1) }, 'malformed'],
    ['EC with coordinates of another curve', { ...publicJwk('P-384'), crv: 'P-256' }, 'malformed'],
    ['EC with a point off the curve', { ...ecJwk, y: ecJwk.x }, 'not_on_curve'],
    ['EC with the origin', { ...ecJwk, x: modulus(32).replace(/./g, 'A'), y: ecJwk.y }, 'not_on_curve'],
    ['OKP on X25519', { ...okpJwk, crv: 'X25519' }, 'unsupported_crv'],
    ['OKP on Ed448', { ...okpJwk, crv: 'Ed448' }, 'unsupported_crv'],
    ['OKP without x', { ...okpJwk, x: undefined }, 'malformed'],
    ['OKP with a long x', { ...okpJwk, x: modulus(33) }, 'malformed'],
  ])('%s → %s', (_, jwk, defect) => {
    expect(importPublicJwk(jwk)).toBe(defect);
  });

  it.each(['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'])('the private member %s → private', (member) => {
    expect(importPublicJwk({ ...rsaJwk, [member]: 'AQAB' })).toBe('private');
  });

  it.each(Object.keys(pairs) as Kind[])('a private %s → private', (kind) => {
    expect(importPublicJwk(pairs[kind].privateKey.export({ format: 'jwk' }))).toBe('private');
  });

  it.each([base64url(3), base64url(17), base64url(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)])(
    'RSA with e = %s → a key',
    (e) => {
      expect(importPublicJwk({ ...rsaJwk, e })).toBeInstanceOf(KeyObject);
    },
  );

  it.each([256, 2048])('RSA of %i bytes → a key', (bytes) => {
    expect(importPublicJwk({ ...rsaJwk, n: modulus(bytes, 0x80) })).toBeInstanceOf(KeyObject);
  });
});

describe('importJwk', () => {
  it.each<[Kind, readonly string[]]>([
    ['RSA', ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']],
    ['P-256', ['ES256']],
    ['P-384', ['ES384']],
    ['P-521', ['ES512']],
    ['Ed25519', ['EdDSA']],
  ])('%s without alg → every algorithm that fits', (kind, algs) => {
    expect(importJwk(publicJwk(kind))).toMatchObject({ algs: new Set(algs) });
  });

  it('alg → that algorithm alone', () => {
    expect(importJwk({ ...rsaJwk, alg: 'PS256' })).toMatchObject({ algs: new Set(['PS256']) });
  });

  it('for signatures, with members of no concern → a key', () => {
    const jwk = { ...rsaJwk, use: 'sig', key_ops: ['verify'], kid: 7, x5c: ['AAAA'], x5t: 'AAAA', extra: {} };
    expect(importJwk(jwk)).toMatchObject({ key: expect.any(KeyObject), thumbprint: thumbprint({ ...rsaJwk }) });
  });

  it.each<[string, unknown, string]>([
    ['null', null, 'malformed'],
    ['a broken key', { ...rsaJwk, n: 'AQ' }, 'rsa_too_small'],
    ['use enc', { ...rsaJwk, use: 'enc' }, 'not_for_signatures'],
    ['use that is no string', { ...rsaJwk, use: ['sig'] }, 'not_for_signatures'],
    ['key_ops without verify', { ...rsaJwk, key_ops: ['encrypt', 'wrapKey'] }, 'not_for_signatures'],
    ['key_ops that is empty', { ...rsaJwk, key_ops: [] }, 'not_for_signatures'],
    ['key_ops that is a string', { ...rsaJwk, key_ops: 'verify' }, 'malformed'],
    ['alg none', { ...rsaJwk, alg: 'none' }, 'unknown_alg'],
    ['alg HS256', { ...rsaJwk, alg: 'HS256' }, 'unknown_alg'],
    ['alg RSA-OAEP', { ...rsaJwk, alg: 'RSA-OAEP' }, 'unknown_alg'],
    ['alg that is no string', { ...rsaJwk, alg: ['RS256'] }, 'unknown_alg'],
    ['alg of another type', { ...rsaJwk, alg: 'ES256' }, 'alg_mismatch'],
    ['alg of another curve', { ...ecJwk, alg: 'ES384' }, 'alg_mismatch'],
  ])('%s → %s', (_, jwk, defect) => {
    expect(importJwk(jwk)).toBe(defect);
  });
});

describe('thumbprint', () => {
  it('of the example of RFC 7638 §3.1', () => {
    const jwk = {
      kty: 'RSA',
      n: '0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw',
      e: 'AQAB',
      alg: 'RS256',
      kid: '2011-04-29',
    };
    expect(thumbprint(jwk)).toBe('NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs');
  });

  it('of the example of RFC 8037 §A.3', () => {
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' };
    expect(thumbprint(jwk)).toBe('kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k');
  });

  it.each(Object.keys(pairs) as Kind[])('of %s is that of an independent implementation', async (kind) => {
    const jwk = { ...publicJwk(kind), kid: 'a', use: 'sig' };
    expect(thumbprint(jwk)).toBe(await calculateJwkThumbprint(jwk));
  });

  it('of a secret → TypeError', () => {
    expect(() => thumbprint({ kty: 'oct', k: 'c2VjcmV0' })).toThrow(TypeError);
  });
});

describe('an Ed25519 key', () => {
  it('of the example of RFC 8037 §A.4 verifies what its private half signs', () => {
    const x = '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo';
    const d = 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A';
    const privateKey = createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', x, d }, format: 'jwk' });
    const key = importPublicJwk({ kty: 'OKP', crv: 'Ed25519', x });
    const algorithm = algorithms.get('EdDSA');
    if (typeof key === 'string' || algorithm === undefined) throw new Error('There is no key to test with.');
    const signingInput = 'eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc';
    const signature = sign(null, Buffer.from(signingInput), privateKey);
    const jws = { header: {}, payload: Buffer.alloc(0), signingInput, signature };
    expect(verifyJws(jws, algorithm, key)).toBe(true);
  });
});
