import { randomUUID } from 'node:crypto';
import type { JsonObject } from '../core/jose/json.ts';
import type { JwkSet } from '../core/jose/jwk.ts';
import type { TokenAlg } from '../core/jose/jws.ts';
import { findAlgorithm } from '../core/jose/sign.ts';
import { type KeyPair, makeKeyPair } from '../core/jose/signed-proof.ts';
import type { KeySet } from '../core/keys/key-set.ts';
import { createStaticKeySet } from '../core/keys/static-key-set.ts';

export interface SigningKey extends KeyPair {
  readonly kid: string;
}

/** State of the previous keys after a rotation. */
export type PreviousKeys = 'published' | 'withdrawn';

/** The keys of one issuer. */
export type KeyRing = ReturnType<typeof createKeyRing>;

interface Published {
  readonly signing: readonly [SigningKey, ...(readonly SigningKey[])];
  readonly jwks: JwkSet<JsonObject>;
  readonly keySet: KeySet;
}

/**
 * Creates the keys of an issuer; the first on first use, because RSA keys are slow to create. Issuers share no keys: otherwise a token with the `kid` of another issuer would be valid
 * there. Throws `TypeError` for an unknown `alg`.
 */
export function createKeyRing(alg: TokenAlg) {
  findAlgorithm(alg); // throws now instead of at the first token
  const encryptionKid = randomUUID();
  let published: Published | undefined;
  let generation = 0;

  const publish = (...signing: Published['signing']): Published => {
    const jwks: JwkSet<JsonObject> = {
      keys: [
        ...signing.map(({ publicJwk, kid, alg }) => ({ ...publicJwk, kid, use: 'sig', alg })),
        // Many providers publish one in addition to their signing keys; it must not verify anything.
        { ...makeKeyPair('ES256').publicJwk, kid: encryptionKid, use: 'enc', alg: 'ECDH-ES' },
      ],
    };
    published = { signing, jwks, keySet: createStaticKeySet(jwks) };
    return published;
  };
  const read = (): Published => published ?? publish(makeSigningKey(alg));

  const keys: KeySet & { readonly generation: number } = {
    find: (kid, name, nth) => read().keySet.find(kid, name, nth),
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
    get current(): SigningKey {
      return read().signing[0];
    },
    /** The published keys; later rotations do not change the object. */
    get jwks(): JwkSet<JsonObject> {
      return read().jwks;
    },
    rotate(previous: PreviousKeys): string {
      if (previous !== 'published' && previous !== 'withdrawn')
        throw new TypeError('rotate: write published or withdrawn');
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
