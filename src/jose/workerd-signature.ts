import { createVerify, type KeyObject, verify } from 'node:crypto';

export interface VerifyOptions {
  readonly key: KeyObject;
  readonly dsaEncoding: 'ieee-p1363';
  readonly padding: number | undefined;
  readonly saltLength: number | undefined;
}

const texts = new WeakMap<KeyObject, string>();

/**
 * Replaces `crypto.verify` on workerd. Workerd's own takes no `KeyObject` with options, and ignores the padding of RSA: a
 * PKCS #1 signature would pass as PSS. Its `createVerify` has neither fault, but no Ed25519.
 */
export function verifyOnWorkerd(
  digest: string | null,
  data: Buffer,
  { key, ...options }: VerifyOptions,
  signature: Buffer,
): boolean {
  if (digest === null) return verify(digest, data, key, signature);
  return createVerify(digest)
    .update(data)
    .verify({ ...options, key: toText(key) }, signature);
}

function toText(key: KeyObject): string {
  const known = texts.get(key);
  if (known !== undefined) return known;
  const text = key.export({ type: 'spki', format: 'pem' }).toString();
  texts.set(key, text);
  return text;
}
