import { constants, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { takeRsaKeys } from '../support/rsa-keys.ts';
import { listCases, type Make } from './row.ts';
import { alterations } from './signatures.ts';

type Alg = 'PS256' | 'PS384' | 'PS512' | 'ES384' | 'ES512' | 'RS512';

const rsa = takeRsaKeys();
const pairs: Readonly<Record<Alg, { readonly privateKey: KeyObject; readonly publicKey: KeyObject }>> = {
  PS256: rsa,
  PS384: rsa,
  PS512: rsa,
  RS512: rsa,
  ES384: generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  ES512: generateKeyPairSync('ec', { namedCurve: 'P-521' }),
};
const algs = Object.keys(pairs) as readonly Alg[]; // the keys of the record above
const kidOf = (alg: Alg): string => `signs-${alg}`;

/** Keys that the provider of the catalogue publishes for these algorithms. */
export const beyondDefaultKeys: readonly unknown[] = algs.map((alg) => ({
  ...pairs[alg].publicKey.export({ format: 'jwk' }),
  kid: kidOf(alg),
  alg,
}));

/** A token with this `alg` and this signature. */
const signed =
  (alg: Alg, make: (input: Buffer, key: KeyObject) => Uint8Array): Make =>
  ({ mint }) =>
    mint({ header: { alg, kid: kidOf(alg) }, sign: (input) => Buffer.from(make(input, pairs[alg].privateKey)) });

const { RSA_PKCS1_PSS_PADDING: pss, RSA_PKCS1_PADDING: pkcs1 } = constants;
const digestOf = (alg: Alg): string => `sha${alg.slice(2)}`;
const signGood = (alg: Alg, input: Buffer, key: KeyObject): Buffer => {
  if (alg.startsWith('ES')) return sign(digestOf(alg), input, { key, dsaEncoding: 'ieee-p1363' });
  const saltLength = Number(alg.slice(2)) / 8;
  return sign(digestOf(alg), input, { key, padding: alg === 'RS512' ? pkcs1 : pss, saltLength });
};

/** A valid token with this `alg`. */
export const goodTokenOf = (alg: Alg): Make => signed(alg, (input, key) => signGood(alg, input, key));
export const beyondDefaultAlgs = algs;

const altered = (alg: Alg, change: (signature: Buffer) => Uint8Array): Make =>
  signed(alg, (input, key) => change(signGood(alg, input, key)));
const forms = (alg: Alg) => alterations.map(([name, change]) => [`${alg}: ${name}`, altered(alg, change)] as const);
const salted = (alg: Alg, saltLength: number, digest = digestOf(alg)): Make =>
  signed(alg, (input, key) => sign(digest, input, { key, padding: pss, saltLength }));
/** Changes of the halves of an ECDSA signature. */
const halves: readonly (readonly [name: string, change: (r: Buffer, s: Buffer) => readonly Buffer[]])[] = [
  ['r and s swapped', (r, s) => [s, r]],
  ['r zero', (r, s) => [Buffer.alloc(r.length), s]],
  ['s zero', (r, s) => [r, Buffer.alloc(s.length)]],
  ['r and s one', (r, s) => [r, s].map(({ length }) => Buffer.from('1'.padStart(length * 2, '0'), 'hex'))],
  ['of the length of ES256', (r, s) => [r.subarray(0, 32), s.subarray(0, 32)]],
];
const alterHalves = (signature: Buffer, change: (typeof halves)[number][1]): Uint8Array => {
  const middle = signature.length / 2;
  return Buffer.concat(change(signature.subarray(0, middle), signature.subarray(middle)));
};

/** Attacks by the signature of algorithms that are off unless they are named. */
export const signaturesBeyondDefault = listCases([
  {
    attack: 'RSA-PSS signature of wrong form, salt, digest or scheme',
    source: 'RFC 7518 §3.5, RFC 8017 §8.1.2, §9.1.2',
    service: 'allAlgorithms',
    reason: 'invalid_signature',
    cases: [
      ...forms('PS256'),
      ...[0, 20, 31, 33, 64, 222].map((length) => [`PS256: salt of ${length} bytes`, salted('PS256', length)] as const),
      ['PS384: salt of 32 bytes', salted('PS384', 32)],
      ['PS512: salt of 32 bytes', salted('PS512', 32)],
      ['PS256: over sha384', salted('PS256', 32, 'sha384')],
      ['PS384: over sha256', salted('PS384', 48, 'sha256')],
      ['PS512: over sha256', salted('PS512', 64, 'sha256')],
      ...(['PS256', 'PS384', 'PS512'] as const).map(
        (alg) =>
          [
            `${alg}: padding of PKCS #1`,
            signed(alg, (input, key) => sign(digestOf(alg), input, { key, padding: pkcs1 })),
          ] as const,
      ),
      [
        'RS512: padding of PSS',
        signed('RS512', (input, key) => sign('sha512', input, { key, padding: pss, saltLength: 64 })),
      ],
      ['RS512: over sha256', signed('RS512', (input, key) => sign('sha256', input, key))],
    ],
  },
  {
    attack: 'ECDSA signature on a larger curve, of wrong form or value',
    source: 'RFC 7518 §3.4, CVE-2022-21449',
    service: 'allAlgorithms',
    reason: 'invalid_signature',
    cases: (['ES384', 'ES512'] as const).flatMap((alg) => [
      ...forms(alg),
      [`${alg}: DER`, signed(alg, (input, key) => sign(digestOf(alg), input, { key, dsaEncoding: 'der' }))] as const,
      [
        `${alg}: over sha256`,
        signed(alg, (input, key) => sign('sha256', input, { key, dsaEncoding: 'ieee-p1363' })),
      ] as const,
      ...halves.map(
        ([name, change]) => [`${alg}: ${name}`, altered(alg, (signature) => alterHalves(signature, change))] as const,
      ),
    ]),
  },
]);
