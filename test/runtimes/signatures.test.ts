import { constants, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { openRuntime } from './runtime.ts';
import type { SignatureCase } from './signatures.ts';

// Vectors of C2SP/wycheproof: see test/vectors/README.md. Every case of every file is run.

interface VectorFile {
  readonly numberOfTests: number;
  readonly testGroups: readonly {
    readonly publicKeyPem: string;
    readonly tests: readonly {
      readonly tcId: number;
      readonly comment: string;
      readonly msg: string;
      readonly sig: string;
      readonly result: string;
    }[];
  }[];
}

const runtime = openRuntime();

describe.each([
  ['rsa_signature_2048_sha256', 'RS256'],
  ['ecdsa_secp256r1_sha256_p1363', 'ES256'],
  ['ed25519', 'EdDSA'],
])('signatures: %s → %s', (name, alg) => {
  const url = new URL(`../vectors/wycheproof_${name}.json`, import.meta.url);
  const { numberOfTests, testGroups } = JSON.parse(readFileSync(url, 'utf8')) as VectorFile; // the schema of the file
  const vectors = testGroups.flatMap(({ publicKeyPem, tests }) => {
    const jwk = createPublicKey(publicKeyPem).export({ format: 'jwk' });
    return tests.map((test) => ({ ...test, jwk }));
  });

  it(`all ${numberOfTests} vectors: accepted where they are valid, and nowhere else`, async () => {
    const cases = vectors.map(({ jwk, msg: message, sig: signature }) => ({ alg, jwk, message, signature }));
    const accepted = await runtime().signatures(cases);
    const wrong = vectors.filter(({ result }, index) => accepted[index] !== (result === 'valid'));
    expect(accepted).toHaveLength(numberOfTests);
    expect(wrong.map(({ tcId, comment }) => `${tcId} ${comment}`)).toEqual([]);
  });
});

describe('signatures: algorithms without vectors', () => {
  const { RSA_PKCS1_PADDING: pkcs1, RSA_PKCS1_PSS_PADDING: pss } = constants;
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const p521 = generateKeyPairSync('ec', { namedCurve: 'P-521' });
  const message = Buffer.from('a message');

  it.each([
    ['RS384', 'sha384', rsa, { padding: pkcs1 }],
    ['RS512', 'sha512', rsa, { padding: pkcs1 }],
    ['PS256', 'sha256', rsa, { padding: pss, saltLength: 32 }],
    ['PS384', 'sha384', rsa, { padding: pss, saltLength: 48 }],
    ['PS512', 'sha512', rsa, { padding: pss, saltLength: 64 }],
    ['ES384', 'sha384', p384, {}],
    ['ES512', 'sha512', p521, {}],
  ] as const)('%s: accepted; over another message, or of another scheme: not', async (alg, digest, pair, options) => {
    const jwk = pair.publicKey.export({ format: 'jwk' });
    const make = (text: Buffer, how: object = options): SignatureCase => {
      const made = sign(digest, text, { key: pair.privateKey, dsaEncoding: 'ieee-p1363', ...how });
      return { alg, jwk, message: message.toString('hex'), signature: made.toString('hex') };
    };
    const foreign: readonly SignatureCase[] =
      pair === rsa
        ? [
            make(message, alg.startsWith('PS') ? { padding: pkcs1 } : { padding: pss, saltLength: 32 }),
            make(message, { padding: pss, saltLength: 20 }),
          ]
        : [];
    const answers = await runtime().signatures([make(message), make(Buffer.from('another')), ...foreign]);
    expect(answers).toEqual([true, false, ...foreign.map(() => false)]);
  });
});
