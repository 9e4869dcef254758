import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { readJwks } from '../../src/keys/jwks.ts';

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });

describe('readJwks', () => {
  it('usable keys → by kid', () => {
    const { keys, published, dropped } = readJwks({
      keys: [
        { ...rsa, kid: 'a' },
        { ...ec, kid: 'b' },
      ],
    });
    expect([...keys.keys()]).toEqual(['a', 'b']);
    expect([...published]).toEqual(['a', 'b']);
    expect(dropped).toEqual([]);
  });

  it.each<[string, unknown, object]>([
    ['without kid', rsa, { kid: undefined, why: 'no_kid' }],
    ['with a kid that is no string', { ...rsa, kid: 7 }, { kid: undefined, why: 'no_kid' }],
    ['with an empty kid', { ...rsa, kid: '' }, { kid: undefined, why: 'no_kid' }],
    ['with a kid over 256 characters', { ...rsa, kid: 'x'.repeat(257) }, { kid: undefined, why: 'no_kid' }],
    ['with a kid that is there already', { ...ec, kid: 'good' }, { kid: 'good', why: 'duplicate_kid' }],
    ['that is symmetric', { kty: 'oct', k: 'AAAA', kid: 'b' }, { kid: 'b', why: 'symmetric' }],
    ['for encryption', { ...rsa, kid: 'b', use: 'enc' }, { kid: 'b', why: 'not_for_signatures' }],
    ['that is a string', 'key', { kid: undefined, why: 'malformed' }],
    ['that is null', null, { kid: undefined, why: 'malformed' }],
  ])('a key %s is dropped, the rest is used', (_, entry, dropped) => {
    const jwks = readJwks({ keys: [{ ...rsa, kid: 'good' }, entry] });
    expect([...jwks.keys.keys()]).toEqual(['good']);
    expect(jwks.dropped).toEqual([dropped]);
  });

  it('a key that is dropped still counts as published', () => {
    const { keys, published } = readJwks({ keys: [{ ...rsa, kid: 'enc', use: 'enc' }] });
    expect(keys.size).toBe(0);
    expect([...published]).toEqual(['enc']);
  });

  it('a kid shared with a key for encryption → the key for signatures', () => {
    const { keys } = readJwks({
      keys: [
        { ...rsa, kid: 'a', use: 'enc' },
        { ...ec, kid: 'a', use: 'sig' },
      ],
    });
    expect(keys.get('a')?.algs).toEqual(new Set(['ES256']));
  });

  it('kids that are names of prototype members are plain kids', () => {
    const { keys } = readJwks({
      keys: [
        { ...ec, kid: '__proto__' },
        { ...ec, kid: 'constructor' },
      ],
    });
    expect([...keys.keys()]).toEqual(['__proto__', 'constructor']);
  });

  it('100 keys are read, 101 are refused as a whole', () => {
    const entries = Array.from({ length: 101 }, (_, index) => ({ ...ec, kid: `key-${index}` }));
    expect(readJwks({ keys: entries.slice(0, 100) }).keys.size).toBe(100);
    expect(() => readJwks({ keys: entries })).toThrow(expect.objectContaining({ kind: 'too_many_keys' }));
  });

  it.each([{}, { keys: null }, { keys: { a: rsa } }, { Keys: [] }])('%j → not_a_key_set', (document) => {
    expect(() => readJwks(document)).toThrow(expect.objectContaining({ kind: 'not_a_key_set' }));
  });
});
