import { createHash, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { takeRsaKeys } from '../support/rsa-keys.ts';
import { listCases, type Make } from './row.ts';
import type { World } from './world.ts';

const strong = takeRsaKeys();
const weak = generateKeyPairSync('rsa', { modulusLength: 1024 });
const point = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const secret = 'a secret that stands in a public document';

const publicJwk = ({ publicKey }: { readonly publicKey: KeyObject }): Readonly<Record<string, unknown>> => ({
  ...publicKey.export({ format: 'jwk' }),
});
const rsa = publicJwk(strong);
const ec = publicJwk(point);

/** Published keys that must not be used, by `kid`. */
const published: Readonly<Record<string, unknown>> = {
  'private-rsa': strong.privateKey.export({ format: 'jwk' }),
  'private-ec': point.privateKey.export({ format: 'jwk' }),
  'public-with-d': { ...rsa, d: 'AQAB' },
  'public-with-k': { ...rsa, k: 'AQAB' },
  symmetric: { kty: 'oct', k: Buffer.from(secret).toString('base64url'), alg: 'HS256' },
  'symmetric-as-rs256': { kty: 'oct', k: Buffer.from(secret).toString('base64url'), alg: 'RS256' },
  'rsa-1024': publicJwk(weak),
  'rsa-even': { ...rsa, n: 'gA'.repeat(60) },
  'exponent-1': { ...rsa, e: 'AQ' },
  'exponent-2': { ...rsa, e: 'Ag' },
  'exponent-0': { ...rsa, e: 'AA' },
  'exponent-huge': { ...rsa, e: Buffer.alloc(255, 0xff).toString('base64url') },
  'modulus-huge': { ...rsa, n: Buffer.alloc(4096, 0xff).toString('base64url') },
  'modulus-padded': { ...rsa, n: `${String(rsa['n'])}=` },
  'modulus-number': { ...rsa, n: 65537 },
  'modulus-absent': { kty: 'RSA', e: 'AQAB' },
  'use-enc': { ...rsa, use: 'enc' },
  'use-number': { ...rsa, use: 1 },
  'ops-encrypt': { ...rsa, key_ops: ['encrypt'] },
  'ops-text': { ...rsa, key_ops: 'verify' },
  'alg-of-encryption': { ...rsa, alg: 'RSA-OAEP' },
  'alg-none': { ...rsa, alg: 'none' },
  'alg-hs256': { ...rsa, alg: 'HS256' },
  'alg-of-ec': { ...rsa, alg: 'ES256' },
  'kty-unknown': { ...rsa, kty: 'rsa' },
  'kty-list': { ...rsa, kty: ['RSA'] },
  'off-curve': { ...ec, y: ec['x'] },
  'curve-k1': { ...ec, crv: 'secp256k1' },
  'curve-of-other-length': { ...ec, crv: 'P-384' },
  'point-zero': { ...ec, x: 'A'.repeat(43), y: 'A'.repeat(43) },
};

/** Members of the key set that are not keys. */
const malformed: readonly unknown[] = [
  null,
  1,
  'key',
  true,
  [],
  {},
  { kid: 7 },
  { ...rsa, kid: ['list'] },
  { ...rsa, kid: '' },
];

/** Invalid keys that the provider of the catalogue publishes in addition to its valid keys. */
export const hostileKeys: readonly unknown[] = [
  ...malformed,
  ...Object.entries(published).map(([kid, jwk]) => ({ ...Object(jwk), kid })),
];

const by =
  (kid: string, sign: (input: Buffer, world: World) => Buffer, header: Readonly<Record<string, unknown>> = {}): Make =>
  (world) =>
    world.mint({ header: { kid, ...header }, sign: (input) => sign(input, world) });
const byStrong = (input: Buffer): Buffer => sign('sha256', input, strong.privateKey);
const byPoint = (input: Buffer): Buffer => sign('sha256', input, { key: point.privateKey, dsaEncoding: 'ieee-p1363' });
const bySecret = (input: Buffer): Buffer => createHmac('sha256', secret).update(input).digest();
const ofEc = new Set(['private-ec', 'off-curve', 'curve-k1', 'curve-of-other-length', 'point-zero']);

/** With e = 1 every message is its own signature, so anyone can sign. */
function signByOne(input: Buffer): Buffer {
  const block = Buffer.alloc(256, 0xff);
  block.set([0, 1]);
  const tail = Buffer.concat([Buffer.from('003031300d060960864801650304020105000420', 'hex'), sha256(input)]);
  tail.copy(block, block.length - tail.length);
  return block;
}

function sha256(input: Buffer): Buffer {
  return createHash('sha256').update(input).digest();
}

/** Attacks by what the key set holds; each token is signed by the key that it names. */
export const keySets = listCases([
  {
    attack: 'key that must not verify',
    source: 'RFC 7517 §4, RFC 7518 §6, RFC 8725 §3.2, §3.5',
    service: 'allAlgorithms',
    reason: 'key_not_usable',
    cases: Object.keys(published).map((kid) => {
      if (kid === 'rsa-1024') return [kid, by(kid, (input) => sign('sha256', input, weak.privateKey))] as const;
      if (kid === 'exponent-1') return [kid, by(kid, signByOne)] as const;
      if (kid.startsWith('symmetric')) return [kid, by(kid, bySecret)] as const;
      return [kid, ofEc.has(kid) ? by(kid, byPoint, { alg: 'ES256' }) : by(kid, byStrong)] as const;
    }),
  },
  {
    attack: 'shared secret that was published',
    source: 'RFC 8725 §3.5, RFC 7518 §6.4',
    service: 'allAlgorithms',
    reason: 'unsupported_alg',
    cases: [
      ['HS256 by a published secret', by('symmetric', bySecret, { alg: 'HS256' })],
      [
        'HS256 by the k beside a public key',
        by('public-with-k', (input) => createHmac('sha256', Buffer.from('AQAB', 'base64url')).update(input).digest(), {
          alg: 'HS256',
        }),
      ],
    ],
  },
  {
    attack: 'invalid member of the key set',
    source: 'RFC 7517 §5',
    service: 'allAlgorithms',
    reason: 'unknown_kid',
    cases: ['undefined', 'null', '7', 'list', '0'].map((kid) => [`kid ${kid}`, by(kid, byStrong)] as const),
  },
]);
