import { type KeyObject, verify } from 'node:crypto';
import { pickByPlatform } from '../platform.ts';
import type { Algorithm } from './algorithms.ts';
import { decodeBase64url, type JsonObject, parseJsonObject } from './json.ts';
import { verifyOnWorkerd } from './workerd-signature.ts';

const verifySignature = pickByPlatform<typeof verifyOnWorkerd>({ workerd: verifyOnWorkerd, others: verify });

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

/** Defect of a string that is not a compact JWS. */
export type JwsDefect = 'opaque' | 'encrypted' | 'parts' | 'encoding' | 'header';

/**
 * Parses a compact JWS (RFC 7515 §7.1), strictly: three parts of canonical base64url, the first a JSON object. Only the
 * payload may be empty: a JWS can sign nothing, and the caller reads the claims. Returns the defect if there is one.
 */
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

/** Reports whether the signature over the signing input is by this key. The only caller of `crypto.verify`. */
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

/** 0 for a key that is not RSA. */
function modulusBytes(key: KeyObject): number {
  return Math.ceil((key.asymmetricKeyDetails?.modulusLength ?? 0) / 8);
}

function countDots(text: string): number {
  let dots = 0;
  for (let i = text.indexOf('.'); i >= 0; i = text.indexOf('.', i + 1)) dots++;
  return dots;
}
