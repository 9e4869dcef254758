import { generateKeyPairSync } from 'node:crypto';
import { compactVerify } from 'jose';
import { describe, expect, it } from 'vitest';
import { algorithms, canVerify, parseJws, verifyJws } from '../../../src/core/jose/jws.ts';
import { findAlgorithm, signCompact } from '../../../src/core/jose/sign.ts';
import { takeRsaKeys } from '../../support/rsa-keys.ts';

const rsa = takeRsaKeys();
const pairs = {
  RSA: () => rsa,
  EC: (namedCurve = '') => generateKeyPairSync('ec', { namedCurve }),
  OKP: () => generateKeyPairSync('ed25519'),
  AKP: (alg = '') => generateKeyPairSync(alg.toLowerCase() as 'ed25519'), // the types of Node 20 do not know it
} as const;

describe.each([...algorithms.keys()].filter(canVerify))('%s', (alg) => {
  it('a JWS signed here → verifies here and with another implementation', async () => {
    const algorithm = findAlgorithm(alg);
    const { privateKey, publicKey } = pairs[algorithm.kty](algorithm.crv);
    const text = signCompact({ alg, typ: 'JWT' }, { sub: 'alice', absent: undefined }, { alg, privateKey });
    const jws = parseJws(text);
    if (typeof jws === 'string') throw new Error(jws);
    expect(jws.header).toEqual({ alg, typ: 'JWT' });
    expect(verifyJws(jws, algorithm, publicKey)).toBe(true);
    const { payload } = await compactVerify(text, publicKey);
    expect(JSON.parse(new TextDecoder().decode(payload))).toEqual({ sub: 'alice' });
  });
});

it('an alg that is not known → TypeError that names the known ones', () =>
  expect(() => findAlgorithm('HS256')).toThrow(
    new TypeError(`alg: write any of ${[...algorithms.keys()].join(', ')}`),
  ));
