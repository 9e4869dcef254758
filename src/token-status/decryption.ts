import type { KeyObject } from 'node:crypto';
import { decodeBase64url, type JsonObject, parseJsonObject } from '../jose/json.ts';
import { type PrivateKey, type ReadPrivateKey, readPrivateKey } from '../jose/sign.ts';
import { checkOptionMembers } from '../option-members.ts';
import { Refused } from '../refused.ts';
import { loadJose } from './load-jose.ts';

/** Keys for encrypted access tokens (RFC 7516, RFC 7519 §3). Needs the optional package `jose`. */
export interface DecryptionOptions {
  /**
   * Private keys of this resource server, in PEM or as JWKs: RSA for `RSA-OAEP-256`, EC for `ECDH-ES`, both with `A256GCM`. For a
   * rotation, list the previous key too. A `kid` of a token selects the JWK with this `kid`.
   */
  readonly keys: readonly PrivateKey[];
}

export interface Decryption {
  /** Returns the JWT inside an encrypted token, and every other token unchanged. */
  decrypt(token: string): string | Promise<string | Refused>;
  /** Rejects if `jose` is not installed. */
  load(): Promise<unknown>;
}

const keyTypes: ReadonlyMap<unknown, string> = new Map([
  ['RSA-OAEP-256', 'rsa'],
  ['ECDH-ES', 'ec'],
]);
const contentEncryption = 'A256GCM';

/** Creates the decryption. Throws `TypeError` for keys that cannot decrypt. */
export function createDecryption(options: DecryptionOptions): Decryption {
  checkOptionMembers<DecryptionOptions>('decryption', options, { keys: true });
  if (!Array.isArray(options.keys) || options.keys.length === 0)
    throw new TypeError('decryption: write at least one key');
  const keys = options.keys.map((key: PrivateKey) => readPrivateKey('decryption', key));
  const types = new Set<string | undefined>(keyTypes.values());
  if (!keys.every(({ key }) => types.has(key.asymmetricKeyType))) {
    throw new TypeError('decryption: write RSA or EC keys');
  }
  let loading: ReturnType<typeof loadJose> | undefined;
  const load = (): ReturnType<typeof loadJose> => {
    loading ??= loadJose();
    return loading;
  };

  // One reason for every failure: a client must not learn which step failed (RFC 7516 §11.5).
  const open = async (token: string): Promise<string | Refused> => {
    const header = parseJsonObject(decodeBase64url(token.slice(0, token.indexOf('.'))) ?? new Uint8Array());
    const candidates = header === undefined ? [] : findKeys(header, keys);
    if (candidates.length === 0) return new Refused('encrypted_token');
    const { compactDecrypt } = await load();
    const algorithms = {
      keyManagementAlgorithms: [...keyTypes.keys()].map(String),
      contentEncryptionAlgorithms: [contentEncryption],
    };
    for (const key of candidates) {
      const opened = await compactDecrypt(token, key, algorithms).catch(() => undefined);
      if (opened !== undefined) return readInner(Buffer.from(opened.plaintext).toString('latin1'));
    }
    return new Refused('encrypted_token');
  };
  return { load, decrypt: (token) => (countParts(token) === 5 ? open(token) : token) };
}

/** Compression is refused: its size is unknown before decryption. */
function findKeys(header: JsonObject, keys: readonly ReadPrivateKey[]): readonly KeyObject[] {
  const { alg, enc, kid } = header;
  if (enc !== contentEncryption || Object.hasOwn(header, 'zip') || Object.hasOwn(header, 'crit')) return [];
  const fitting = keys.filter(({ key }) => key.asymmetricKeyType === keyTypes.get(alg));
  return fitting
    .filter((each) => kid === undefined || each.kid === undefined || each.kid === kid)
    .map(({ key }) => key);
}

/** The inner token must be signed: anyone can encrypt for a public key. */
function readInner(inner: string): string | Refused {
  return countParts(inner) === 3 ? inner : new Refused('malformed_token');
}

function countParts(token: string): number {
  return token.split('.', 6).length;
}
