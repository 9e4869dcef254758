import { createPrivateKey, generateKeyPairSync, type JsonWebKey, KeyObject, sign } from 'node:crypto';
import { calculateJwkThumbprint } from 'jose';
import { describe, expect, it } from 'vitest';
import { importJwk, importPublicJwk, thumbprint } from '../../../src/core/jose/jwk.ts';
import { algorithms, canVerify, verifyJws } from '../../../src/core/jose/jws.ts';
import { takeRsaKeys } from '../../support/rsa-keys.ts';

const rsa = takeRsaKeys();
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
/** A modulus whose residues are powers of 65537, as the chips with CVE-2017-15361 made them. */
const rocaModulus = (bytes: number): string => {
  const primes = Array.from({ length: 166 }, (_, index) => index + 2).filter((n, _at, all) =>
    all.every((m) => m >= n || n % m > 0),
  );
  const product = primes.reduce((all, prime) => all * BigInt(prime), 1n);
  let power = 1n;
  for (let exponent = 0; exponent < 123_457; exponent++) power = (power * 65_537n) % product;
  const n = power + product * ((2n ** BigInt(bytes * 8) - power) / product);
  return Buffer.from(n.toString(16), 'hex').toString('base64url');
};

describe('importPublicJwk', () => {
  it.each(Object.keys(pairs) as Kind[])('%s → the public key', (kind) => {
    const key = importPublicJwk(publicJwk(kind));
    expect(key).toBeInstanceOf(KeyObject);
    expect(key).toSatisfy((each: KeyObject) => each.type === 'public' && each.equals(pairs[kind].publicKey));
  });

  it.each<[string, string, unknown]>([
    ['nothing', 'malformed', undefined],
    ['null', 'malformed', null],
    ['an array', 'malformed', [rsaJwk]],
    ['a string', 'malformed', JSON.stringify(rsaJwk)],
    ['a secret', 'symmetric', { kty: 'oct', k: 'c2VjcmV0' }],
    ['no kty', 'unsupported_kty', { n: rsaJwk.n, e: rsaJwk.e }],
    ['kty in lower case', 'unsupported_kty', { ...rsaJwk, kty: 'rsa' }],
    ['kty that is no string', 'unsupported_kty', { ...rsaJwk, kty: ['RSA'] }],
    ['kty from the prototype', 'unsupported_kty', { ...rsaJwk, kty: 'constructor' }],
    ['RSA without n', 'malformed', { kty: 'RSA', e: 'AQAB' }],
    ['RSA without e', 'malformed', { kty: 'RSA', n: rsaJwk.n }],
    ['RSA with n as a number', 'malformed', { ...rsaJwk, n: 7 }],
    ['RSA with padding in n', 'malformed', { ...rsaJwk, n: `${rsaJwk.n}==` }],
    ['RSA with plain base64 in e', 'malformed', { ...rsaJwk, e: 'A+AB' }],
    ['RSA with stray bits in e', 'malformed', { ...rsaJwk, e: 'Ax' }],
    ['RSA of 2047 bits, after zeros', 'rsa_too_small', { ...rsaJwk, n: `AAAA${modulus(256, 0x7f)}` }],
    ['RSA of zeros', 'malformed', { ...rsaJwk, n: 'A'.repeat(400) }],
    ['RSA of 2047 bits', 'rsa_too_small', { ...rsaJwk, n: modulus(256, 0x7f) }],
    ['RSA of 1024 bits', 'rsa_too_small', { ...rsaJwk, n: modulus(128) }],
    ['RSA of 16385 bits', 'rsa_too_large', { ...rsaJwk, n: modulus(2049, 0x01) }],
    ['RSA with e = 0', 'malformed', { ...rsaJwk, e: base64url(0) }],
    ['RSA of a weak chip (ROCA)', 'roca', { ...rsaJwk, n: rocaModulus(256) }],
    ['RSA of a weak chip (ROCA), 4096 bits', 'roca', { ...rsaJwk, n: rocaModulus(512) }],
    ['RSA with e = 1', 'bad_exponent', { ...rsaJwk, e: base64url(1) }],
    ['RSA with e = 2', 'bad_exponent', { ...rsaJwk, e: base64url(2) }],
    ['RSA with e = 65536', 'bad_exponent', { ...rsaJwk, e: base64url(1, 0, 0) }],
    ['RSA with e of 65 bits', 'bad_exponent', { ...rsaJwk, e: base64url(1, 0, 0, 0, 0, 0, 0, 0, 1) }],
    ['EC without crv', 'unsupported_crv', { ...ecJwk, crv: undefined }],
    ['EC on secp256k1', 'unsupported_crv', { ...ecJwk, crv: 'secp256k1' }],
    ['EC on Ed25519', 'unsupported_crv', { ...ecJwk, crv: 'Ed25519' }],
    ['EC without y', 'malformed', { ...ecJwk, y: undefined }],
    ['EC with padding in x', 'malformed', { ...ecJwk, x: `${ecJwk.x}=` }],
    ['EC with a short x', 'malformed', { ...ecJwk, x: base64url(1) }],
    ['EC with coordinates of another curve', 'malformed', { ...publicJwk('P-384'), crv: 'P-256' }],
    ...[
      '0000000000000000000000000000000000000000000000000000000000000000',
      '0100000000000000000000000000000000000000000000000000000000000080',
      'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
      'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
      'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
      '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
      'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
    ].map((point): [string, string, unknown] => [
      `Ed25519 of small order, ${point.slice(0, 8)}`,
      'small_order',
      { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(point, 'hex').toString('base64url') },
    ]),
    ['EC with a point off the curve', 'not_on_curve', { ...ecJwk, y: ecJwk.x }],
    ['EC with the origin', 'not_on_curve', { ...ecJwk, x: modulus(32).replace(/./g, 'A'), y: ecJwk.y }],
    ['OKP on X25519', 'unsupported_crv', { ...okpJwk, crv: 'X25519' }],
    ['OKP on Ed448', 'unsupported_crv', { ...okpJwk, crv: 'Ed448' }],
    ['OKP without x', 'malformed', { ...okpJwk, x: undefined }],
    ['OKP with a long x', 'malformed', { ...okpJwk, x: modulus(33) }],
  ])('%s → %s', (_, defect, jwk) => expect(importPublicJwk(jwk)).toMatchObject({ why: defect }));

  it.each(['d', 'priv', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'])('the private member %s → private', (member) =>
    expect(importPublicJwk({ ...rsaJwk, [member]: 'AQAB' })).toEqual({ why: 'private', member }),
  );

  it.each(Object.keys(pairs) as Kind[])('a private %s → private', (kind) =>
    expect(importPublicJwk(pairs[kind].privateKey.export({ format: 'jwk' }))).toMatchObject({ why: 'private' }),
  );

  it.each([base64url(3), base64url(17), base64url(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)])(
    'RSA with e = %s → a key',
    (e) => expect(importPublicJwk({ ...rsaJwk, e })).toBeInstanceOf(KeyObject),
  );

  it.each([256, 2048])('RSA of %i bytes → a key', (bytes) =>
    expect(importPublicJwk({ ...rsaJwk, n: modulus(bytes, 0x80) })).toBeInstanceOf(KeyObject),
  );
});

describe('importJwk', () => {
  it.each<[Kind, readonly string[]]>([
    ['RSA', ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']],
    ['P-256', ['ES256']],
    ['P-384', ['ES384']],
    ['P-521', ['ES512']],
    ['Ed25519', ['EdDSA', 'Ed25519']],
  ])('%s without alg → every algorithm that fits', (kind, algs) =>
    expect(importJwk(publicJwk(kind))).toMatchObject({ algs: new Set(algs) }),
  );

  it('alg → that algorithm alone', () =>
    expect(importJwk({ ...rsaJwk, alg: 'PS256' })).toMatchObject({ algs: new Set(['PS256']) }));

  it.each(['EdDSA', 'Ed25519'])('alg %s → both names', (alg) =>
    expect(importJwk({ ...okpJwk, alg })).toMatchObject({ algs: new Set(['EdDSA', 'Ed25519']) }),
  );

  it.each(['n', 'e'])('zero octets before %s → the same key', (member) => {
    const padded = Buffer.concat([Buffer.alloc(2), Buffer.from(String(rsaJwk[member]), 'base64url')]);
    const read = importJwk({ ...rsaJwk, [member]: padded.toString('base64url') });
    expect('key' in read && read.key.export({ format: 'jwk' })).toEqual(rsaJwk);
  });

  it.each<[string | undefined, unknown]>([
    [undefined, null],
    ['n', { ...rsaJwk, n: '' }],
    ['e', { ...rsaJwk, e: 'AQAC' }],
    ['e', { ...rsaJwk, e: 7 }],
    ['x', { ...ecJwk, x: 'AQ' }],
    ['y', { ...ecJwk, y: undefined }],
    ['crv', { ...ecJwk, crv: 'P-192' }],
    ['kty', { ...ecJwk, kty: 'ec' }],
    ['use', { ...ecJwk, use: 'enc' }],
    ['key_ops', { ...ecJwk, key_ops: ['sign'] }],
    ['alg', { ...ecJwk, alg: 'ES384' }],
    ['alg', { kty: 'AKP', alg: 'ML-DSA-45', pub: 'AQ' }],
    ['alg', { kty: 'AKP', pub: 'AQ' }],
    ['pub', { kty: 'AKP', alg: 'ML-DSA-44', pub: 'AQ' }],
    ['priv', { kty: 'AKP', alg: 'ML-DSA-44', pub: 'AQ', priv: 'AQ' }],
  ])('a defect of %s → named', (member, jwk) => expect(importJwk(jwk)).toMatchObject({ member }));

  it('ML-DSA → a key where the runtime verifies it, otherwise an unsupported type', () => {
    const read = importJwk({ kty: 'AKP', alg: 'ML-DSA-65', pub: 'A'.repeat(2603) });
    const algs = new Set(['ML-DSA-65']);
    expect(read).toMatchObject(canVerify('ML-DSA-65') ? { algs } : { why: 'unsupported_kty', member: 'kty' });
  });

  it('for signatures, with members of no concern → a key', () => {
    const others = { kid: 7, crv: 'P-256', x5c: ['AAAA'], x5t: 'AAAA', extra: {} };
    const jwk = { ...rsaJwk, ...others, use: 'sig', key_ops: ['verify'], alg: 'RS256' };
    expect(importJwk(jwk)).toMatchObject({ key: expect.any(KeyObject), jwk });
  });

  it('members that are null → as if they were absent', () => {
    const read = importJwk({ ...rsaJwk, use: null, key_ops: null, alg: null, d: null, k: null });
    expect(read).toMatchObject({ key: expect.any(KeyObject), jwk: rsaJwk });
    expect(importJwk({ ...rsaJwk, n: null })).toMatchObject({ why: 'malformed', member: 'n' });
  });

  it.each<[string, string, unknown]>([
    ['null', 'malformed', null],
    ['a broken key', 'rsa_too_small', { ...rsaJwk, n: 'AQ' }],
    ['use enc', 'not_for_signatures', { ...rsaJwk, use: 'enc' }],
    ['use that is no string', 'not_for_signatures', { ...rsaJwk, use: ['sig'] }],
    ['key_ops without verify', 'not_for_signatures', { ...rsaJwk, key_ops: ['encrypt', 'wrapKey'] }],
    ['key_ops that is empty', 'not_for_signatures', { ...rsaJwk, key_ops: [] }],
    ['key_ops that is a string', 'malformed', { ...rsaJwk, key_ops: 'verify' }],
    ['alg none', 'unknown_alg', { ...rsaJwk, alg: 'none' }],
    ['alg HS256', 'unknown_alg', { ...rsaJwk, alg: 'HS256' }],
    ['alg RSA-OAEP', 'unknown_alg', { ...rsaJwk, alg: 'RSA-OAEP' }],
    ['alg that is no string', 'unknown_alg', { ...rsaJwk, alg: ['RS256'] }],
    ['alg of another type', 'alg_mismatch', { ...rsaJwk, alg: 'ES256' }],
    ['alg of another curve', 'alg_mismatch', { ...ecJwk, alg: 'ES384' }],
  ])('%s → %s', (_, defect, jwk) => expect(importJwk(jwk)).toMatchObject({ why: defect }));
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
    expect(() => thumbprint({ kty: 'oct', k: 'c2VjcmV0' })).toThrow(
      new TypeError('A thumbprint is made of a JWK of type RSA, EC, OKP or AKP.'),
    );
  });
});

describe('an Ed25519 key', () => {
  it('of the example of RFC 8037 §A.4 verifies what its private half signs', () => {
    const x = '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo';
    const d = 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A';
    const privateKey = createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', x, d }, format: 'jwk' });
    const key = importPublicJwk({ kty: 'OKP', crv: 'Ed25519', x });
    const algorithm = algorithms.get('EdDSA');
    if ('why' in key || algorithm === undefined) throw new Error('There is no key to test with.');
    const signingInput = 'eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc';
    const signature = sign(null, Buffer.from(signingInput), privateKey);
    const jws = { header: {}, payload: Buffer.alloc(0), signingInput, signature };
    expect(verifyJws(jws, algorithm, key)).toBe(true);
  });
});
