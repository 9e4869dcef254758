import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/core/jose/json.ts';
import { type DroppedKey, readAlgs, readJwks } from '../../../src/core/keys/jwks.ts';
import { findKey } from '../../../src/core/keys/key-set.ts';
import { ProviderError } from '../../../src/core/outbound/provider-error.ts';
import { takeRsaKeys } from '../../support/rsa-keys.ts';

const rsa = takeRsaKeys().publicKey.export({ format: 'jwk' });
const read = (...keys: readonly unknown[]) => readJwks({ keys });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });

describe('readJwks', () => {
  it('usable keys → by kid', () => {
    const { keys, published, dropped } = read({ ...rsa, kid: 'a' }, { ...ec, kid: 'b' });
    expect([[...keys.keys()], [...published], dropped]).toEqual([['a', 'b'], ['a', 'b'], []]);
  });

  const noKid: DroppedKey = { kid: undefined, why: 'no_kid', member: 'kid' };
  it.each<[string, DroppedKey, unknown]>([
    ['without kid', noKid, rsa],
    ['with a kid that is no string', noKid, { ...rsa, kid: 7 }],
    ['with a list for its kid', noKid, { ...rsa, kid: ['good'] }],
    ['with an empty kid', noKid, { ...rsa, kid: '' }],
    ['with a kid over 256 characters', noKid, { ...rsa, kid: 'x'.repeat(257) }],
    ['that is symmetric', { kid: 'b', why: 'symmetric', member: 'kty' }, { kty: 'oct', k: 'AAAA', kid: 'b' }],
    ['for encryption', { kid: 'b', why: 'not_for_signatures', member: 'use' }, { ...rsa, kid: 'b', use: 'enc' }],
    ['that is a string', { kid: undefined, why: 'malformed', member: undefined }, 'key'],
    ['that is null', { kid: undefined, why: 'malformed', member: undefined }, null],
  ])('a key %s is dropped, the rest is used', (_, dropped, entry) => {
    const jwks = read({ ...rsa, kid: 'good' }, entry);
    expect([[...jwks.keys.keys()], jwks.dropped]).toEqual([['good'], [dropped]]);
    expect([...jwks.published]).toEqual([...new Set(['good', dropped.kid ?? 'good'])]);
  });

  it('a key that is dropped still counts as published', () => {
    const { keys, published } = read({ ...rsa, kid: 'enc', use: 'enc' });
    expect([keys.size, [...published]]).toEqual([0, ['enc']]);
  });

  it('a kid shared with a key for encryption → the key for signatures', () => {
    const { keys } = read({ ...rsa, kid: 'a', use: 'enc' }, { ...ec, kid: 'a', use: 'sig' });
    expect(keys.get('a')?.map(({ algs }) => algs)).toEqual([new Set(['ES256'])]);
  });

  it('keys with one kid → each for its algorithms, by index', () => {
    const others = takeRsaKeys().publicKey.export({ format: 'jwk' });
    const jwks = read({ ...rsa, kid: 'a', alg: 'RS512' }, { ...ec, kid: 'a' }, { ...others, kid: 'a' });
    const find = (alg: string) => [0, 1, 2].map((nth) => findKey(jwks, 'a', alg, nth)?.export({ format: 'jwk' }));
    expect(find('RS512')).toMatchObject([{ n: rsa.n }, { n: others.n }, undefined]);
    expect(find('RS256')).toEqual([others, undefined, undefined]);
    expect(findKey(jwks, 'a', 'ES256')?.export({ format: 'jwk' })).toEqual(ec);
    expect(jwks.dropped).toEqual([]);
    expect(readAlgs(jwks.entries)).toEqual(new Set([...jwks.keys.values()].flat().flatMap(({ algs }) => [...algs])));
  });

  it('kids that are names of prototype members are plain kids', () => {
    const { keys } = read({ ...ec, kid: '__proto__' }, { ...ec, kid: 'constructor' });
    expect([...keys.keys()]).toEqual(['__proto__', 'constructor']);
  });

  it('a kid of 256 characters is used', () =>
    expect([...readJwks({ keys: [{ ...ec, kid: 'x'.repeat(256) }] }).keys.keys()]).toEqual(['x'.repeat(256)]));

  it('100 keys are read, 101 are refused as a whole', () => {
    const entries = Array.from({ length: 101 }, (_, index) => ({ ...ec, kid: `key-${index}` }));
    expect(readJwks({ keys: entries.slice(0, 100) }).keys.size).toBe(100);
    expect(() => readJwks({ keys: entries })).toThrow(new ProviderError('too_many_keys', { detail: '101' }));
  });

  it.each<[string, JsonObject]>([
    ['no keys', {}],
    ['null', { keys: null }],
    ['an object of keys', { keys: { a: rsa } }],
    ['keys in other case', { Keys: [] }],
  ])('%s → not_a_key_set', (_, document) =>
    expect(() => readJwks(document)).toThrow(expect.objectContaining({ kind: 'not_a_key_set' })),
  );
});
