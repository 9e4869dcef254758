import { generateKeyPairSync, KeyObject } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createStaticKeySet } from '../../../src/core/keys/static-key-set.ts';

const jwk = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });

describe('a static key set', () => {
  it('finds its keys by kid and alg, and never fetches', () => {
    const keySet = createStaticKeySet({
      keys: [
        { ...jwk, kid: 'a' },
        { ...jwk, kid: 'b', use: 'enc' },
      ],
    });
    expect(keySet.find('a', 'ES256')).toBeInstanceOf(KeyObject);
    expect([keySet.find('a', 'RS256'), keySet.find('b', 'ES256')]).toEqual([undefined, undefined]);
    expect([keySet.has('b'), keySet.has('c'), keySet.usable()]).toEqual([true, false, true]);
    expect(keySet.refetch()).toBeUndefined();
  });

  it('without a usable key → ProviderError', () =>
    expect(() => createStaticKeySet({ keys: [jwk] })).toThrow(expect.objectContaining({ kind: 'no_usable_keys' })));
});
