import type { JwkSet } from '../jose/jwk.ts';
import { ProviderError } from '../outbound/provider-error.ts';
import { readJwks } from './jwks.ts';
import { findKey, type KeySet } from './key-set.ts';

/** A key set without keys, which is never fetched. */
export const noKeys: KeySet = {
  find: () => undefined,
  generation: 0,
  has: () => false,
  usable: () => false,
  refetch: () => undefined,
};

/**
 * Creates a key set of given keys, which is never fetched: for tests, and without a network. Not a JWK set with a usable key:
 * `ProviderError`.
 */
export function createStaticKeySet(jwks: JwkSet): KeySet {
  const { keys, published } = readJwks(jwks);
  if (keys.size === 0) throw new ProviderError('no_usable_keys');
  return {
    find: (kid, alg, nth) => findKey({ keys }, kid, alg, nth),
    generation: 0,
    has: (kid) => published.has(kid),
    usable: () => true,
    refetch: () => undefined,
  };
}
