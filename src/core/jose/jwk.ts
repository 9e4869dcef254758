import { createPublicKey, hash, type JsonWebKey, type KeyObject } from 'node:crypto';
import { attempt } from '../attempt.ts';
import { decodeBase64url, isJsonObject, type JsonObject } from './json.ts';
import { type Algorithm, algorithms, canVerify, otherNames, readAlg } from './jws.ts';

/** Defect of a JWK as a public key for signatures: a closed set. */
export type PublicJwkDefect =
  /** Not an object; a member absent, of the wrong type or length, or not canonical base64url. */
  | 'malformed'
  /** Holds members of a private key. */
  | 'private'
  | 'symmetric'
  | 'unsupported_kty'
  | 'unsupported_crv'
  /** RSA under 2048 bits. */
  | 'rsa_too_small'
  /** RSA over 16384 bits: verifying would be slow. */
  | 'rsa_too_large'
  /** RSA with an even public exponent, or one under 3 or over 64 bits. */
  | 'bad_exponent'
  /** RSA of a chip with CVE-2017-15361 (ROCA): the modulus reveals the private key. */
  | 'roca'
  /** The coordinates are not a point on the curve. */
  | 'not_on_curve'
  /** An Ed25519 point of small order: some signatures hold for any string. */
  | 'small_order';

/** Cause for not using a published JWK: a closed set. */
export type JwkDefect =
  | PublicJwkDefect
  /** `use` or `key_ops` (RFC 7517 §4.2, §4.3) give it another purpose. */
  | 'not_for_signatures'
  /** `alg` is unknown. */
  | 'unknown_alg'
  /** `alg` is for another type of key. */
  | 'alg_mismatch';

export interface VerificationKey {
  readonly key: KeyObject;
  readonly algs: ReadonlySet<string>;
  readonly jwk: JsonObject;
}

/** A JWK set (RFC 7517 §5), in published form. */
export type JwkSet<K extends object = object> = {
  /** The keys. */
  readonly keys: readonly K[];
};

/** Defect of a JWK, with the member that has it; `undefined` for a JWK that is not an object. */
export interface JwkFlaw<T = JwkDefect> {
  /** Defect. */
  readonly why: T;
  /** Member that has it. */
  readonly member: string | undefined;
}

const flaw = <T extends JwkDefect>(why: T, member: string | undefined): JwkFlaw<T> => ({ why, member });

type Material = JsonWebKey | JwkFlaw<PublicJwkDefect>;

interface KeyType {
  readonly read: (jwk: JsonObject) => Material;
  readonly members: readonly string[];
}

/** Members that only a private or symmetric key has (RFC 7518 §6.2.2, §6.3.2, §6.4, RFC 9964 §3). */
const privateMembers: readonly string[] = ['d', 'priv', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];
const minModulusBits = 2048; // RFC 7518 §3.3
const maxModulusBits = 16_384;
const maxExponentBytes = 8;

/** A modulus of CVE-2017-15361 is a power of 65537 modulo each of these primes. Of other moduli, fewer than one in 10^8. */
const rocaPrimes: readonly number[] = [11, 13, 17, 19, 37, 53, 61, 71, 73, 79, 97, 103, 107, 109, 127, 151, 157];

/** Bytes of an AKP key, by `alg` (FIPS 204, table 2). */
const akpBytes = { 'ML-DSA-44': 1312, 'ML-DSA-65': 1952, 'ML-DSA-87': 2592 };
const akpLengths: ReadonlyMap<unknown, number> = new Map(Object.entries(akpBytes));

/** Curves by `crv`, with the bytes of one coordinate (RFC 7518 §6.2.1.2). */
const curves: ReadonlyMap<unknown, number> = new Map(Object.entries({ 'P-256': 32, 'P-384': 48, 'P-521': 66 }));

/** The y of every point of Ed25519 whose order divides 8, without the sign; 0 and 1 also as p and p + 1. */
const smallOrder: ReadonlySet<string> = new Set([
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
]);

/** Readers by `kty`, and the members of the thumbprint (RFC 7638 §3.2, RFC 8037 §2, RFC 9964 §6) in the order of the hash. */
const keyTypes: ReadonlyMap<unknown, KeyType> = new Map([
  ['RSA', { read: readRsa, members: ['e', 'kty', 'n'] }],
  ['EC', { read: readEc, members: ['crv', 'kty', 'x', 'y'] }],
  ['OKP', { read: readOkp, members: ['crv', 'kty', 'x'] }],
  ['AKP', { read: readAkp, members: ['alg', 'kty', 'pub'] }],
]);

/** Imports a public JWK (RFC 7517). Returns the defect if it is invalid. `kid`, `use`, `key_ops` and `alg` are ignored. */
export function importPublicJwk(jwk: unknown): KeyObject | JwkFlaw<PublicJwkDefect> {
  if (!isJsonObject(jwk)) return flaw('malformed', undefined);
  if (jwk['kty'] === 'oct') return flaw('symmetric', 'kty');
  const secret = findPrivateMember(jwk);
  if (secret !== undefined) return flaw('private', secret);
  const material = keyTypes.get(jwk['kty'])?.read(jwk) ?? flaw('unsupported_kty', 'kty');
  if ('why' in material) return material as JwkFlaw<PublicJwkDefect>; // key material has no such member
  // Everything else was checked.
  return attempt(() => createPublicKey({ key: material, format: 'jwk' })) ?? flaw('not_on_curve', 'x');
}

export function findPrivateMember(jwk: JsonObject): string | undefined {
  return privateMembers.find((member) => Object.hasOwn(jwk, member));
}

/** Reports whether a key has the type and curve of an algorithm. */
export function isKeyFor({ kty, crv, alg }: JsonObject, algorithm: Algorithm): boolean {
  return kty === algorithm.kty && (algorithm.crv === undefined || (kty === 'AKP' ? alg : crv) === algorithm.crv);
}

/** Imports a published JWK, with the algorithms it may verify. Returns the defect if it is unusable. Ignores `kid`. */
export function importJwk(published: unknown): VerificationKey | JwkFlaw {
  if (!isJsonObject(published)) return flaw('malformed', undefined);
  // Serializers of some providers write absent members as null.
  const jwk: JsonObject = Object.fromEntries(Object.entries(published).filter(([, value]) => value !== null));
  const { use, key_ops: operations, alg } = jwk;
  const key = importPublicJwk(jwk);
  if ('why' in key) return key;
  if (use !== undefined && use !== 'sig') return flaw('not_for_signatures', 'use');
  if (operations !== undefined && !Array.isArray(operations)) return flaw('malformed', 'key_ops');
  if (operations?.includes('verify') === false) return flaw('not_for_signatures', 'key_ops');
  if (alg !== undefined && readAlg(alg) === undefined) return flaw('unknown_alg', 'alg');
  const allowed = new Set<string>();
  for (const [name, each] of algorithms) {
    const isNamed = alg === undefined || name === alg || name === otherNames.get(alg);
    if (isNamed && isKeyFor(jwk, each)) allowed.add(name);
  }
  return allowed.size === 0 ? flaw('alg_mismatch', 'alg') : { key, algs: allowed, jwk };
}

/** The JWK SHA-256 thumbprint (RFC 7638 §3) of a public JWK, in base64url; of another type of key: `TypeError`. */
export function thumbprint(jwk: JsonObject): string {
  const found = findThumbprint(jwk);
  if (found === undefined) throw new TypeError('A thumbprint is made of a JWK of type RSA, EC, OKP or AKP.');
  return found;
}

/** Like `thumbprint`; `undefined` for another type of key. */
export function findThumbprint(jwk: JsonObject): string | undefined {
  const members = keyTypes.get(jwk['kty'])?.members;
  if (members === undefined) return undefined;
  return hash('sha256', JSON.stringify(Object.fromEntries(members.map((each) => [each, jwk[each]]))), 'base64url');
}

function readRsa({ n, e }: JsonObject): Material {
  const modulus = readUnsigned(n);
  const exponent = readUnsigned(e);
  if (modulus === undefined) return flaw('malformed', 'n');
  if (exponent === undefined) return flaw('malformed', 'e');
  const bits = modulus.length * 8 - (Math.clz32(modulus.readUInt8()) - 24);
  if (bits < minModulusBits) return flaw('rsa_too_small', 'n');
  if (bits > maxModulusBits) return flaw('rsa_too_large', 'n');
  const isEven = exponent.readUInt8(exponent.length - 1) % 2 === 0;
  const isOne = exponent.length === 1 && exponent.readUInt8() === 1;
  if (isEven || isOne || exponent.length > maxExponentBytes) return flaw('bad_exponent', 'e');
  if (isRoca(modulus)) return flaw('roca', 'n');
  return { kty: 'RSA', n: modulus.toString('base64url'), e: exponent.toString('base64url') };
}

function isRoca(modulus: Uint8Array): boolean {
  return rocaPrimes.every((prime) => {
    const rest = modulus.reduce((left, byte) => (left * 256 + byte) % prime, 0);
    let power = 1;
    do power = (power * 65_537) % prime;
    while (power !== rest && power !== 1);
    return power === rest;
  });
}

function readEc({ crv, x, y }: JsonObject): Material {
  const length = curves.get(crv);
  if (typeof crv !== 'string' || length === undefined) return flaw('unsupported_crv', 'crv');
  if (!isOctets(x, length)) return flaw('malformed', 'x');
  return isOctets(y, length) ? { kty: 'EC', crv, x, y } : flaw('malformed', 'y');
}

function readOkp({ crv, x }: JsonObject): Material {
  if (crv !== 'Ed25519') return flaw('unsupported_crv', 'crv');
  if (!isOctets(x, 32)) return flaw('malformed', 'x');
  return isOfSmallOrder(x) ? flaw('small_order', 'x') : { kty: 'OKP', crv, x };
}

function readAkp({ alg, pub }: JsonObject): Material {
  const length = akpLengths.get(alg);
  if (length === undefined) return flaw('unsupported_crv', 'alg');
  if (!isOctets(pub, length)) return flaw('malformed', 'pub');
  return canVerify('ML-DSA-44') ? { kty: 'AKP', alg, pub } : flaw('unsupported_kty', 'kty');
}

/** RFC 8032 §5.1.2: the last bit of the encoding is the sign, and the rest says which point it is. */
function isOfSmallOrder(x: string): boolean {
  const bytes = Buffer.from(x, 'base64url');
  bytes.writeUInt8(bytes.readUInt8(31) & 0x7f, 31);
  return smallOrder.has(bytes.toString('hex'));
}

/** Base64urlUInt (RFC 7518 §2). Zero octets in front, which some providers write, are left out. */
function readUnsigned(value: unknown): Buffer | undefined {
  const bytes = typeof value === 'string' ? decodeBase64url(value) : undefined;
  const first = bytes?.findIndex((byte) => byte !== 0) ?? -1;
  return first < 0 ? undefined : bytes?.subarray(first);
}

function isOctets(value: unknown, length: number): value is string {
  return typeof value === 'string' && decodeBase64url(value)?.length === length;
}
