import { generateKeyPairSync } from 'node:crypto';
import { beforeEach, describe, expect, it, test, vi } from 'vitest';
import { parseJsonObject } from '../../src/core/jose/json.ts';
import { createStaticKeySet } from '../../src/core/keys/static-key-set.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createTestIssuer, type TokenAlg } from '../../src/testing/index.ts';
import { bearer, judge } from './judge.ts';

vi.mock('node:crypto', async (importOriginal) => {
  const original = await importOriginal<typeof import('node:crypto')>();
  return { ...original, generateKeyPairSync: vi.fn(original.generateKeyPairSync) };
});
beforeEach(() => void vi.mocked(generateKeyPairSync).mockClear());

const now = () => 1_700_000_000.9;

/** A part of a compact JWS: 0 the header, 1 the claims. */
function readPart(token: string, part: 0 | 1) {
  return parseJsonObject(Buffer.from(token.split('.')[part] ?? '', 'base64url'));
}

describe('a token', () => {
  const issuer = createTestIssuer({ now });
  const { audience } = issuer;
  const server = createResourceServer({ issuers: [issuer], audience, now });

  it('a new token → the claims and the header of RFC 9068 §2.2', () => {
    const token = issuer.token();
    expect(readPart(token, 0)).toEqual({ alg: 'RS256', typ: 'at+jwt', kid: issuer.kid });
    expect(readPart(token, 1)).toEqual({
      iss: 'https://issuer.test/',
      aud: 'https://api.test/',
      sub: 'test-subject',
      client_id: 'test-client',
      iat: 1_700_000_000,
      exp: 1_700_003_600,
      jti: expect.stringMatching(/^[\da-f-]{36}$/),
    });
    expect(issuer.token()).not.toBe(token);
  });

  it('claims and header → merged over the defaults', async () => {
    const token = issuer.token({ sub: 'alice', client_id: undefined, roles: ['admin'] }, { typ: 'JWT' });
    expect(readPart(token, 0)).toMatchObject({ alg: 'RS256', typ: 'JWT' });
    expect(readPart(token, 1)).toMatchObject({ sub: 'alice', roles: ['admin'] });
    expect(readPart(token, 1)).not.toHaveProperty('client_id');
    expect(await judge(server, bearer(token))).toBe('accepted');
  });

  test('headers → accepted by fetch', () => {
    expect(new Headers(issuer.headers()).get('authorization')).toMatch(/^Bearer eyJ/);
    expect([...new Headers(issuer.dpopClient().headers({ url: 'https://api.test/' })).keys()]).toEqual([
      'authorization',
      'dpop',
    ]);
  });
});

describe('an issuer', () => {
  it('issuer and audience → equal to those in its tokens', async () => {
    const names = { issuer: 'https://login.example/realm', audience: 'messages' };
    const issuer = createTestIssuer({ ...names, alg: 'ES256' });
    expect(issuer).toMatchObject(names);
    const server = createResourceServer({ issuers: [issuer], audience: 'messages', algorithms: ['ES256'] });
    expect(await judge(server, bearer(issuer.token()))).toBe('accepted');
    expect(await judge(server, bearer(issuer.flawed('invalid_issuer')))).toBe('invalid_issuer');
    expect(await judge(server, bearer(issuer.flawed('invalid_audience')))).toBe('invalid_audience');
  });

  it('no key before the first token, then one RSA key', () => {
    const issuer = createTestIssuer();
    expect(generateKeyPairSync).not.toHaveBeenCalled();
    for (let i = 0; i < 3; i++) issuer.token();
    const made = vi.mocked(generateKeyPairSync).mock.calls.map(([type]) => type as string);
    expect(made.filter((type) => type === 'rsa')).toHaveLength(1);
  });

  it('another issuer with the same names and kid → refused', async () => {
    const issuer = createTestIssuer();
    const server = createResourceServer({ issuers: [issuer], audience: issuer.audience });
    const other = createTestIssuer();
    expect(await judge(server, bearer(other.token()))).toBe('unknown_kid');
    expect(await judge(server, bearer(other.token({}, { kid: issuer.kid })))).toBe('invalid_signature');
  });

  it('jwks → public keys only', () => {
    const { jwks, kid } = createTestIssuer();
    expect(jwks.keys).toEqual([
      { kty: 'RSA', kid, use: 'sig', alg: 'RS256', n: expect.any(String), e: 'AQAB' },
      expect.objectContaining({ use: 'enc' }),
    ]);
    expect(jwks.keys.filter((key) => Object.hasOwn(key, 'd'))).toEqual([]);
  });

  test('an unknown alg → TypeError at creation', () =>
    expect(() => createTestIssuer({ alg: 'HS256' as TokenAlg })).toThrow(/^alg: write any of RS256, /));
});

describe('a rotation', () => {
  const createPair = () => {
    const issuer = createTestIssuer({ alg: 'ES256' });
    const options = { audience: issuer.audience, algorithms: ['ES256'] } as const;
    return { issuer, server: createResourceServer({ ...options, issuers: [issuer] }), options };
  };

  it('rotate() → a new key signs, the previous one stays published', async () => {
    const { issuer, server } = createPair();
    const before = issuer.token();
    const { kid } = issuer;
    const fresh = issuer.rotate();
    expect(fresh).not.toBe(kid);
    expect(issuer.kid).toBe(fresh);
    expect(readPart(issuer.token(), 0)).toMatchObject({ kid: fresh });
    expect(await judge(server, bearer(before))).toBe('accepted');
    expect(await judge(server, bearer(issuer.token()))).toBe('accepted');
  });

  it("rotate('withdrawn') → the previous keys are unknown", async () => {
    const { issuer, server } = createPair();
    const first = issuer.token();
    issuer.rotate();
    const second = issuer.token();
    expect(await judge(server, bearer(first))).toBe('accepted');
    issuer.rotate('withdrawn');
    expect(await judge(server, bearer(first))).toBe('unknown_kid');
    expect(await judge(server, bearer(second))).toBe('unknown_kid');
    expect(await judge(server, bearer(issuer.token()))).toBe('accepted');
    expect(await judge(server, bearer(issuer.flawed('key_not_usable')))).toBe('key_not_usable');
  });

  it('a copy of the keys → unchanged', async () => {
    const { issuer, options } = createPair();
    const keys = createStaticKeySet(issuer.jwks);
    const server = createResourceServer({ ...options, issuers: [{ issuer: issuer.issuer, keys }] });
    const before = issuer.token();
    issuer.rotate('withdrawn');
    expect(await judge(server, bearer(before))).toBe('accepted');
    expect(await judge(server, bearer(issuer.token()))).toBe('unknown_kid');
  });

  it('rotate of another word, which would withdraw the keys → TypeError', () =>
    expect(() => createTestIssuer().rotate('publish' as never)).toThrow('rotate: write published or withdrawn'));

  it('rotate() → a new generation of the keys', () => {
    const { issuer } = createPair();
    issuer.token();
    expect(issuer.keys).toMatchObject({ generation: 0 });
    issuer.rotate();
    expect(issuer.keys).toMatchObject({ generation: 1 });
    expect(issuer.keys.usable()).toBe(true);
    expect(issuer.keys.refetch()).toBeUndefined();
    expect(issuer.keys.has(issuer.kid)).toBe(true);
  });
});
