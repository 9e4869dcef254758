import { randomUUID } from 'node:crypto';
import type { TokenAlg } from '../jose/algorithms.ts';
import type { JsonObject } from '../jose/json.ts';
import type { JwkSet } from '../jose/jwk.ts';
import { findAlgorithm } from '../jose/sign.ts';
import type { KeySet } from '../keys/key-set.ts';
import { createStaticKeySet } from '../keys/static-key-set.ts';
import { type KeyPair, makeKeyPair } from './signing.ts';

/** A key that signs access tokens. */
export interface SigningKey extends KeyPair {
  readonly kid: string;
}

/** What becomes of the keys that signed before. */
export type PreviousKeys = 'published' | 'withdrawn';

/** The keys of one issuer. The first is made when it is first needed: making RSA keys is slow. */
export interface KeyRing {
  /** Signs now. */
  readonly current: SigningKey;
  /** The `kid` of a published key that is for encryption. */
  readonly encryptionKid: string;
  /** What is published now; later rotations do not change it. */
  readonly jwks: JwkSet<JsonObject>;
  /** What is published, always: follows rotations. */
  readonly keys: KeySet;
  /** Makes a new key, signs with it from now on, and returns its `kid`. */
  rotate(previous: PreviousKeys): string;
}

interface Published {
  readonly signing: readonly [SigningKey, ...(readonly SigningKey[])];
  readonly jwks: JwkSet<JsonObject>;
  readonly keySet: KeySet;
}

/**
 * Makes the keys of an issuer. They are its own, not shared with other issuers of the process: else a token of one
 * would pass for a token of another as soon as a test puts the other's `kid` into it. An unknown `alg`: `TypeError`.
 */
export function createKeyRing(alg: TokenAlg): KeyRing {
  findAlgorithm(alg); // now, rather than at the first token
  const encryptionKid = randomUUID();
  let published: Published | undefined;
  let generation = 0;

  const publish = (...signing: Published['signing']): Published => {
    const jwks: JwkSet<JsonObject> = { keys: [...signing.map(toJwk), makeEncryptionJwk(encryptionKid)] };
    published = { signing, jwks, keySet: createStaticKeySet(jwks) };
    return published;
  };
  const read = (): Published => published ?? publish(makeSigningKey(alg));

  const keys: KeySet & { readonly generation: number } = {
    find: (kid, name) => read().keySet.find(kid, name),
    has: (kid) => read().keySet.has(kid),
    usable: () => true,
    refetch: () => undefined,
    get generation() {
      return generation;
    },
  };

  return {
    encryptionKid,
    keys,
    get current() {
      return read().signing[0];
    },
    get jwks() {
      return read().jwks;
    },
    rotate(previous) {
      const fresh = makeSigningKey(alg);
      publish(fresh, ...(previous === 'published' ? read().signing : []));
      generation++;
      return fresh.kid;
    },
  };
}

function makeSigningKey(alg: TokenAlg): SigningKey {
  return { ...makeKeyPair(alg), kid: randomUUID() };
}

function toJwk({ publicJwk, kid, alg }: SigningKey): JsonObject {
  return { ...publicJwk, kid, use: 'sig', alg };
}

/** Many providers publish one beside their signing keys; it must not verify anything. */
function makeEncryptionJwk(kid: string): JsonObject {
  return { ...makeKeyPair('ES256').publicJwk, kid, use: 'enc', alg: 'ECDH-ES' };
}
