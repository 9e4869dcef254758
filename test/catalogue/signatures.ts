import { constants, createHash, privateEncrypt, sign } from 'node:crypto';
import { signBytes } from '../../src/core/jose/sign.ts';
import { listCases, type Make } from './row.ts';
import type { SigningKey, World } from './world.ts';

const signed =
  (make: (input: Buffer, world: World) => Buffer, key: 'rsa' | 'ec' | 'ed' = 'rsa'): Make =>
  (world) =>
    world.mint({ key: world.keys[key], sign: (input) => make(input, world) });
const altered = (change: (signature: Buffer) => Uint8Array, key: 'rsa' | 'ec' | 'ed' = 'rsa'): Make =>
  signed((input, { keys }) => Buffer.from(change(signBytes(input, keys[key]))), key);
const flip = (signature: Buffer, at: number): Uint8Array =>
  signature.map((byte, index) => (index === at ? byte ^ 1 : byte));

/** Changes of a valid signature, for any algorithm. */
export const alterations: readonly (readonly [name: string, change: (signature: Buffer) => Uint8Array])[] = [
  ['a byte short', (signature) => signature.subarray(1)],
  ['a byte cut off its end', (signature) => signature.subarray(0, -1)],
  ['a zero byte in front', (signature) => Buffer.concat([Buffer.alloc(1), signature])],
  ['a zero byte behind', (signature) => Buffer.concat([signature, Buffer.alloc(1)])],
  ['half', (signature) => signature.subarray(0, signature.length / 2)],
  ['twice', (signature) => Buffer.concat([signature, signature])],
  ['one byte', () => Buffer.alloc(1)],
  ['zeros', (signature) => signature.fill(0)],
  ['ones', (signature) => signature.fill(0xff)],
  ['first bit turned', (signature) => flip(signature, 0)],
  ['middle bit turned', (signature) => flip(signature, signature.length >> 1)],
  ['last bit turned', (signature) => flip(signature, signature.length - 1)],
];
const lengths = (key: 'rsa' | 'ec' | 'ed') =>
  alterations.map(([name, change]) => [name, altered(change, key)] as const);

/** One part from another token of the same key. */
const swapped =
  (index: 0 | 1 | 2): Make =>
  ({ mint }) => {
    const other = mint({ header: { typ: 'JWT' }, claims: { sub: 'admin' } }).split('.');
    return mint({
      finish: (token) =>
        token
          .split('.')
          .with(index, other[index] ?? '')
          .join('.'),
    });
  };

/** PKCS #1 padding with content of the attacker. */
const padded = (block: (digest: Buffer) => Buffer): Make =>
  signed((input, { keys }) =>
    privateEncrypt(
      { key: keys.rsa.privateKey, padding: constants.RSA_NO_PADDING },
      block(createHash('sha256').update(input).digest()),
    ),
  );
const digestInfo = Buffer.from('3031300d060960864801650304020105000420', 'hex');
const modulusBytes = 256;
const fill = (tail: Buffer, filler = 0xff, type = 1): Buffer =>
  Buffer.concat([Buffer.from([0, type]), Buffer.alloc(modulusBytes - 3 - tail.length, filler), Buffer.alloc(1), tail]);

const order = BigInt('0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551');
const fixed = (value: bigint): Buffer => Buffer.from(value.toString(16).padStart(64, '0'), 'hex');
const rAndS = (r: bigint, s: bigint): Make => signed(() => Buffer.concat([fixed(r), fixed(s)]), 'ec');

/** Small-order points of edwards25519, and the scalar zero, which some verifiers accept. */
const smallOrder = (point: string): Make =>
  signed(() => Buffer.concat([Buffer.from(point, 'hex'), Buffer.alloc(32)]), 'ed');

const kidOf =
  (pick: (world: World) => SigningKey): Make =>
  (world) =>
    world.mint({ header: { kid: pick(world).kid } });

/** Attacks by the signature. */
export const signatures = listCases([
  {
    attack: 'altered or borrowed',
    source: 'RFC 7515 §5.2',
    reason: 'invalid_signature',
    cases: [
      ['header of another token', swapped(0)],
      ['claims of another token', swapped(1)],
      ['signature of another token', swapped(2)],
      ['key of nobody', ({ mint, foreign, keys }) => mint({ key: { ...foreign, kid: keys.rsa.kid } })],
      ['kid of the provider’s other key', kidOf(({ provider, keys }) => ({ ...keys.rsa, kid: provider.kid }))],
      [
        'a character of the claims changed',
        ({ mint }) => mint({ finish: (token) => token.replace('.ey', '.fy') }),
        'malformed_claims',
      ],
    ],
  },
  {
    attack: 'RSA signature of wrong length or value',
    source: 'RFC 8017 §8.2.2, CVE-2020-28042',
    reason: 'invalid_signature',
    cases: lengths('rsa'),
  },
  {
    attack: 'forged PKCS #1 padding, other digest or scheme',
    source: 'RFC 8017 §9.2, CVE-2006-4339',
    reason: 'invalid_signature',
    cases: [
      [
        'PSS',
        signed((input, { keys }) =>
          sign('sha256', input, { key: keys.rsa.privateKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }),
        ),
      ],
      ...['sha1', 'sha384', 'sha512', 'md5'].map(
        (digest) => [`over ${digest}`, signed((input, { keys }) => sign(digest, input, keys.rsa.privateKey))] as const,
      ),
      ['digest without DigestInfo', padded((digest) => fill(digest))],
      [
        'DigestInfo without NULL',
        padded((digest) =>
          fill(
            Buffer.concat([Buffer.from('302f300b0609608648016503040201', 'hex'), Buffer.from('0420', 'hex'), digest]),
          ),
        ),
      ],
      ['bytes behind the digest', padded((digest) => fill(Buffer.concat([digestInfo, digest, Buffer.alloc(16, 1)])))],
      [
        'short padding, filled up behind',
        padded((digest) =>
          Buffer.concat([
            Buffer.from('0001ffffffffffffffff00', 'hex'),
            digestInfo,
            digest,
            Buffer.alloc(modulusBytes - 11 - digestInfo.length - digest.length, 2),
          ]),
        ),
      ],
      ['padding of another byte', padded((digest) => fill(Buffer.concat([digestInfo, digest]), 0xfe))],
      ['padding of type 2', padded((digest) => fill(Buffer.concat([digestInfo, digest]), 0xff, 2))],
      ['twice the digest', padded((digest) => fill(Buffer.concat([digestInfo, digest, digestInfo, digest])))],
    ],
  },
  {
    attack: 'ECDSA signature of wrong form or value',
    source: 'RFC 7518 §3.4, CVE-2022-21449',
    service: 'allAlgorithms',
    reason: 'invalid_signature',
    cases: [
      ...lengths('ec'),
      [
        'DER',
        signed((input, { keys }) => sign('sha256', input, { key: keys.ec.privateKey, dsaEncoding: 'der' }), 'ec'),
      ],
      [
        'over sha512',
        signed(
          (input, { keys }) => sign('sha512', input, { key: keys.ec.privateKey, dsaEncoding: 'ieee-p1363' }),
          'ec',
        ),
      ],
      [
        'r and s swapped',
        altered((signature) => Buffer.concat([signature.subarray(32), signature.subarray(0, 32)]), 'ec'),
      ],
      ['r and s zero', rAndS(0n, 0n)],
      ['r one, s zero', rAndS(1n, 0n)],
      ['r and s one', rAndS(1n, 1n)],
      ['r and s the order', rAndS(order, order)],
      ['r the order, s one', rAndS(order, 1n)],
      [
        's beyond the order',
        altered((signature) => Buffer.concat([signature.subarray(0, 32), Buffer.alloc(32, 0xff)]), 'ec'),
      ],
    ],
  },
  {
    attack: 'Ed25519 signature of wrong form or value',
    source: 'RFC 8032 §5.1.7, RFC 8037 §3.1',
    service: 'allAlgorithms',
    reason: 'invalid_signature',
    cases: [
      ...lengths('ed'),
      ['R the neutral point, S zero', smallOrder(`01${'00'.repeat(31)}`)],
      ['R of order 2, S zero', smallOrder(`ec${'ff'.repeat(30)}7f`)],
      ['R of order 4, S zero', smallOrder('00'.repeat(32))],
      ['R of order 8, S zero', smallOrder('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05')],
      ['S plus the order', altered(addOrder, 'ed')],
      [
        'over the digest',
        signed((input, { keys }) => sign(null, createHash('sha512').update(input).digest(), keys.ed.privateKey), 'ed'),
      ],
    ],
  },
]);

/** RFC 8032 §5.1.7: S must be below the order, or one signature has two spellings. */
function addOrder(signature: Buffer): Buffer {
  const group = 2n ** 252n + 27742317777372353535851937790883648493n;
  const s = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + group;
  const bytes = Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse();
  return Buffer.concat([signature.subarray(0, 32), bytes]);
}
