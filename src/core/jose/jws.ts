import {
  constants,
  createPublicKey,
  createVerify,
  type KeyObject,
  type VerifyKeyObjectInput,
  verify,
} from 'node:crypto';
import { attempt } from '../attempt.ts';
import { pickByPlatform } from '../platform.ts';
import { decodeBase64url, type JsonObject, parseJsonObject } from './json.ts';

/** Verification rules of a JWS `alg` (RFC 7518 §3, RFC 8037 §3, RFC 9864 §2.2, RFC 9964 §4). */
export interface Algorithm {
  readonly kty: 'RSA' | 'EC' | 'OKP' | 'AKP';
  /** JWK `crv` that fits, of AKP `alg`; absent for RSA. */
  readonly crv?: string;
  /** Digest name for `node:crypto`; `null` where the scheme hashes by itself. */
  readonly digest: string | null;
  readonly padding?: number;
  /** RSA-PSS salt length in bytes, equal to the digest's (RFC 7518 §3.5). */
  readonly saltLength?: number;
  /** Bytes of a signature; absent for RSA, where it is the length of the modulus. */
  readonly signatureLength?: number;
}

/** `alg` of an access token: every one that can be allowed (RFC 7518 §3.1, RFC 8037 §3.1). */
export type TokenAlg = ProofAlg | 'RS384' | 'RS512' | 'PS384' | 'PS512' | 'ES512';

type MlDsa = 'ML-DSA-44' | 'ML-DSA-65' | 'ML-DSA-87';

/** `alg` of a DPoP proof: every one that can be allowed (RFC 9449 §4.3). */
export type ProofAlg = 'ES256' | 'ES384' | 'EdDSA' | 'Ed25519' | 'RS256' | 'PS256' | MlDsa;

const { RSA_PKCS1_PADDING: pkcs1, RSA_PKCS1_PSS_PADDING: pss } = constants;
const table = {
  RS256: { kty: 'RSA', digest: 'sha256', padding: pkcs1 },
  RS384: { kty: 'RSA', digest: 'sha384', padding: pkcs1 },
  RS512: { kty: 'RSA', digest: 'sha512', padding: pkcs1 },
  PS256: { kty: 'RSA', digest: 'sha256', padding: pss, saltLength: 32 },
  PS384: { kty: 'RSA', digest: 'sha384', padding: pss, saltLength: 48 },
  PS512: { kty: 'RSA', digest: 'sha512', padding: pss, saltLength: 64 },
  ES256: { kty: 'EC', digest: 'sha256', crv: 'P-256', signatureLength: 64 },
  ES384: { kty: 'EC', digest: 'sha384', crv: 'P-384', signatureLength: 96 },
  ES512: { kty: 'EC', digest: 'sha512', crv: 'P-521', signatureLength: 132 },
  EdDSA: { kty: 'OKP', digest: null, crv: 'Ed25519', signatureLength: 64 },
  Ed25519: { kty: 'OKP', digest: null, crv: 'Ed25519', signatureLength: 64 },
  'ML-DSA-44': { kty: 'AKP', digest: null, crv: 'ML-DSA-44', signatureLength: 2420 },
  'ML-DSA-65': { kty: 'AKP', digest: null, crv: 'ML-DSA-65', signatureLength: 3309 },
  'ML-DSA-87': { kty: 'AKP', digest: null, crv: 'ML-DSA-87', signatureLength: 4627 },
} as const satisfies Readonly<Record<TokenAlg, Algorithm>>;

export const tokenAlgs = Object.keys(table) as readonly TokenAlg[]; // the keys are the names

/** Every signature algorithm that can be allowed. HS* and none are absent on purpose. */
export const algorithms: ReadonlyMap<string, Algorithm> = new Map(Object.entries(table));

export const proofAlgorithms: readonly ProofAlg[] = [
  ...(['ES256', 'ES384', 'EdDSA', 'Ed25519', 'RS256', 'PS256'] as const),
  ...(['ML-DSA-44', 'ML-DSA-65', 'ML-DSA-87'] as const),
];

/** Two names of one algorithm (RFC 9864 §2.2): each allows both, for Ed25519 keys. */
export const otherNames: ReadonlyMap<unknown, string> = new Map(Object.entries({ EdDSA: 'Ed25519', Ed25519: 'EdDSA' }));

const zeroKey = { kty: 'AKP', alg: 'ML-DSA-44', pub: 'A'.repeat(1750) };
let verifiesAkp: boolean | undefined;

/** Reports whether this runtime can verify an algorithm. Algorithms of AKP keys need Node 24.6. */
export function canVerify(alg: string): boolean {
  if (algorithms.get(alg)?.kty !== 'AKP') return true;
  verifiesAkp ??= attempt(createPublicKey, { key: zeroKey, format: 'jwk' }) !== undefined;
  return verifiesAkp;
}

/** Reads the algorithms of an option. Throws `TypeError` for one that is not known, or that this runtime cannot verify. */
export function readAlgorithms(names: readonly string[], known: readonly string[]): ReadonlySet<string> {
  if (!Array.isArray(names) || names.length === 0) throw new TypeError('algorithms: name at least one, in a list');
  for (const alg of names) {
    if (!known.includes(alg)) throw new TypeError(`algorithms: write any of ${known.join(', ')}`);
    if (!canVerify(alg)) throw new TypeError(`algorithms: ${alg} requires Node 24.6 or later`);
  }
  return new Set(names.flatMap((alg) => [alg, otherNames.get(alg) ?? alg]));
}

/** The algorithm that an `alg` names, if it is among the allowed ones. Default: all of the table are. */
export function readAlg(alg: unknown, allowed: { has(alg: string): boolean } = algorithms): Algorithm | undefined {
  return typeof alg === 'string' && allowed.has(alg) ? algorithms.get(alg) : undefined;
}

/** Header parameters that would change what is signed or how (RFC 7515 §4.1.11, RFC 7797, RFC 7516): none is understood. */
const refusedHeaderParameters: readonly string[] = ['crit', 'b64', 'zip'];

/** A compact JWS, parsed and not yet verified. */
export interface Jws {
  readonly header: JsonObject;
  /** The header as it came, in base64url: equal text is an equal header. */
  readonly headerText: string;
  readonly payload: Buffer;
  /** ASCII of header, dot and payload as they came: what was signed. */
  readonly signingInput: string;
  readonly signature: Buffer;
}

/** Headers that were parsed before, by their text; an issuer and a client each write but few. */
export interface KnownHeaders {
  get(headerText: string): JsonObject | undefined;
}

const nothing = Buffer.alloc(0);
const maxKidLength = 256;

/** Defect of a string that is not a compact JWS. */
export type JwsDefect = 'opaque' | 'encrypted' | 'parts' | 'encoding' | 'header';

/** Parses a compact JWS (RFC 7515 §7.1) of canonical base64url. Only the payload may be empty. Returns the defect if any. */
export function parseJws(text: string, known?: KnownHeaders): Jws | JwsDefect {
  const dots = countDots(text);
  if (dots === 0) return 'opaque';
  if (dots !== 2) return dots === 4 ? 'encrypted' : 'parts';
  const firstDot = text.indexOf('.');
  const secondDot = text.lastIndexOf('.');
  if (firstDot === 0 || secondDot === text.length - 1) return 'parts';
  const headerText = text.slice(0, firstDot);
  const knownHeader = known?.get(headerText);
  const headerBytes = knownHeader === undefined ? decodeBase64url(headerText) : nothing;
  if (headerBytes === undefined) return 'encoding';
  const payload = secondDot === firstDot + 1 ? nothing : decodeBase64url(text.slice(firstDot + 1, secondDot));
  if (payload === undefined) return 'encoding';
  const signature = decodeBase64url(text.slice(secondDot + 1));
  if (signature === undefined) return 'encoding';
  const header = knownHeader ?? parseJsonObject(headerBytes);
  if (header === undefined) return 'header';
  return { header, headerText, payload, signingInput: text.slice(0, secondDot), signature };
}

export function findRefusedParameter(header: JsonObject): string | undefined {
  for (const parameter of refusedHeaderParameters) if (Object.hasOwn(header, parameter)) return parameter;
  return undefined;
}

/** Reports whether a value can name a key: a string of 1 to 256 characters. */
export function isKid(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= maxKidLength;
}

/** Reports whether the signature over the signing input is by this key. */
export function verifyJws(jws: Pick<Jws, 'signingInput' | 'signature'>, algorithm: Algorithm, key: KeyObject): boolean {
  // RFC 8017 §8.1.2 (1): OpenSSL would also take a PSS signature that has lost a zero in front.
  if (jws.signature.length !== (algorithm.signatureLength ?? modulusBytes(key))) return false;
  return verifySignature(
    algorithm.digest,
    Buffer.from(jws.signingInput, 'latin1'),
    { key, dsaEncoding: 'ieee-p1363', padding: algorithm.padding, saltLength: algorithm.saltLength },
    jws.signature,
  );
}

const verifySignature = pickByPlatform<typeof verifyOnWorkerd>({ workerd: verifyOnWorkerd, others: verify });

/**
 * Replaces `crypto.verify` on workerd. Workerd's own takes no `KeyObject` with options, and ignores the padding of RSA: a
 * PKCS #1 signature would pass as PSS. Its `createVerify` has neither fault, but no Ed25519.
 */
export function verifyOnWorkerd(
  digest: string | null,
  data: Buffer,
  { key, ...options }: VerifyKeyObjectInput,
  signature: Buffer,
): boolean {
  if (digest === null) return verify(digest, data, key, signature);
  return createVerify(digest)
    .update(data)
    .verify({ ...options, key: key.export({ type: 'spki', format: 'pem' }) }, signature);
}

/** 0 for a key that is not RSA. */
function modulusBytes(key: KeyObject): number {
  return Math.ceil((key.asymmetricKeyDetails?.modulusLength ?? 0) / 8);
}

function countDots(text: string): number {
  let dots = 0;
  for (let i = text.indexOf('.'); i >= 0; i = text.indexOf('.', i + 1)) dots++;
  return dots;
}
