import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { expect, it } from 'vitest';
import { algorithms, verifyOnWorkerd } from '../../../src/core/jose/jws.ts';
import { takeRsaKeys } from '../../support/rsa-keys.ts';

// On Node, whose createVerify does the same; on workerd itself: test/runtimes/signatures.test.ts.
const rsa = takeRsaKeys();
const pairs: Readonly<Record<string, { readonly publicKey: KeyObject; readonly privateKey: KeyObject }>> = {
  RSA: rsa,
  'P-256': generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  'P-384': generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  'P-521': generateKeyPairSync('ec', { namedCurve: 'P-521' }),
  Ed25519: generateKeyPairSync('ed25519'),
};

it.each([...algorithms])(
  '%s: accepted; over another message: not',
  (_alg, { kty, crv, digest, padding, saltLength }) => {
    const { publicKey, privateKey } = pairs[crv ?? kty] ?? rsa;
    const message = Buffer.from('a message');
    const how = { dsaEncoding: 'ieee-p1363', padding, saltLength } as const;
    const signature = sign(digest, message, { key: privateKey, ...how });
    for (const _again of [1, 2]) {
      expect(verifyOnWorkerd(digest, message, { key: publicKey, ...how }, signature)).toBe(true);
      expect(verifyOnWorkerd(digest, Buffer.from('another'), { key: publicKey, ...how }, signature)).toBe(false);
    }
  },
);
