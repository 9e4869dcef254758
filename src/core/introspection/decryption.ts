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
   * rotation, list the previous key too. A `kid` of a token selects the JWK with this `kid`; `alg` and `use` of a JWK are respected.
   */
  readonly keys: readonly PrivateKey[];
}

const keyTypes: ReadonlyMap<unknown, string> = new Map([
  ['RSA-OAEP-256', 'rsa'],
  ['ECDH-ES', 'ec'],
]);
const contentEncryption = 'A256GCM';

/** Creates the decryption; `load` rejects if `jose` is not installed. Throws `TypeError` for keys that cannot decrypt. */
export function createDecryption(options: DecryptionOptions) {
  checkOptionMembers<DecryptionOptions>('decryption', options, { keys: true });
  if (!Array.isArray(options.keys) || options.keys.length === 0)
    throw new TypeError('decryption: write at least one key');
  const keys = options.keys.map((key: PrivateKey) => readPrivateKey('decryption', key));
  const types = new Set<string | undefined>(keyTypes.values());
  if (!keys.every(({ key }) => types.has(key.asymmetricKeyType))) {
    throw new TypeError('decryption: write RSA or EC keys');
  }
  const isForDecryption = ({ alg, use = 'enc' }: { readonly alg?: string; readonly use?: unknown }): boolean =>
    use === 'enc' && (alg === undefined || keyTypes.has(alg));
  if (!options.keys.every((key: PrivateKey) => typeof key === 'string' || isForDecryption(key))) {
    throw new TypeError('decryption: a JWK has another alg or use. Write RSA-OAEP-256 or ECDH-ES, and enc, or none.');
  }

  // One reason for every failure: a client must not learn which step failed (RFC 7516 §11.5).
  const open = async (token: string): Promise<string | Refused> => {
    const others = token.split('.').slice(1);
    // jose decodes leniently, and a token must have one spelling (RFC 7515 §2). RFC 7516 §7.1 lets parts be empty.
    const isCanonical = others.every((part) => part === '' || decodeBase64url(part) !== undefined);
    const head = isCanonical ? decodeBase64url(token.slice(0, token.indexOf('.'))) : undefined;
    const header = head && parseJsonObject(head);
    const candidates = header === undefined ? [] : findKeys(header, keys);
    if (candidates.length === 0) return new Refused('encrypted_token');
    const { compactDecrypt } = await loadJose();
    const algorithms = {
      keyManagementAlgorithms: [...keyTypes.keys()].map(String),
      contentEncryptionAlgorithms: [contentEncryption],
    };
    for (const key of candidates) {
      const opened = await compactDecrypt(token, key, algorithms).catch(() => undefined);
      if (opened === undefined) continue;
      // The inner token must be signed: anyone can encrypt for a public key.
      const inner = Buffer.from(opened.plaintext).toString('latin1');
      return countParts(inner) === 3 ? inner : new Refused('malformed_token');
    }
    return new Refused('encrypted_token');
  };
  return {
    /** Its type would need that package in the declarations. */
    load: (): Promise<unknown> => loadJose(),
    /** Returns the JWT inside an encrypted token, and every other token unchanged. */
    decrypt: (token: string): string | Promise<string | Refused> => (countParts(token) === 5 ? open(token) : token),
  };
}

/** Compression is refused: its size is unknown before decryption. */
function findKeys(header: JsonObject, keys: readonly ReadPrivateKey[]): readonly KeyObject[] {
  const { alg, enc, kid } = header;
  if (enc !== contentEncryption || Object.hasOwn(header, 'zip') || Object.hasOwn(header, 'crit')) return [];
  const fits = (own: unknown, named: unknown): boolean => own === undefined || named === undefined || own === named;
  return keys
    .filter(({ key }) => key.asymmetricKeyType === keyTypes.get(alg))
    .filter((each) => fits(each.kid, kid) && fits(each.alg, alg))
    .map(({ key }) => key);
}

function countParts(token: string): number {
  return token.split('.', 6).length;
}
