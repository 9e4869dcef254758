import {
  constants,
  createCipheriv,
  generateKeyPairSync,
  type KeyObject,
  publicEncrypt,
  randomBytes,
} from 'node:crypto';
import { deflateRawSync } from 'node:zlib';
import { CompactEncrypt } from 'jose';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { PrivateKey } from '../../../src/core/jose/sign.ts';
import { createResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import { explain } from '../../../src/explain/explain.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';

const issuer = createTestIssuer();
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const otherRsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' });
const pem = ({ privateKey }: { readonly privateKey: KeyObject }) =>
  privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const jwk = ({ privateKey }: { readonly privateKey: KeyObject }, kid: string): PrivateKey => ({
  ...privateKey.export({ format: 'jwk' }),
  kid,
});
const header = { alg: 'RSA-OAEP-256', enc: 'A256GCM', cty: 'JWT' };

/** Encrypts as a provider does. */
const encrypt = (inner: string, more: Partial<typeof header & { kid: string }> = {}, key = rsa.publicKey) =>
  new CompactEncrypt(new TextEncoder().encode(inner)).setProtectedHeader({ ...header, ...more }).encrypt(key);

/** Encrypts for the RSA key with any header, byte for byte. */
function encryptRaw(headerText: string, plaintext: Buffer): string {
  const [cek, iv] = [randomBytes(32), randomBytes(12)];
  const encoded = Buffer.from(headerText).toString('base64url');
  const cipher = createCipheriv('aes-256-gcm', cek, iv).setAAD(Buffer.from(encoded));
  const text = Buffer.concat([cipher.update(plaintext), cipher.final()]);
  const padding = constants.RSA_PKCS1_OAEP_PADDING;
  const wrapped = publicEncrypt({ key: rsa.publicKey, padding, oaepHash: 'sha256' }, cek);
  return [encoded, ...[wrapped, iv, text, cipher.getAuthTag()].map((each) => each.toString('base64url'))].join('.');
}

const open = (keys: readonly PrivateKey[] = [pem(rsa)]) =>
  createResourceServer({ issuers: [issuer], audience: issuer.audience, decryption: { keys } });
const requestOf = (token: string) =>
  new Request('https://api.test/', { headers: { authorization: `Bearer ${token}` } });
const reasonOf = async (token: string, server = open()) => {
  const result = await server.judge(requestOf(token));
  return 'reason' in result ? result.reason : 'accepted';
};

afterEach(() => vi.doUnmock('jose'));

describe('an encrypted token', () => {
  it.each([
    ['RSA-OAEP-256', rsa],
    ['ECDH-ES', p256],
    ['ECDH-ES', p384],
  ] as const)('%s, key in PEM and as a JWK → admitted with the claims of the inner JWT', async (alg, pair) => {
    const token = await encrypt(issuer.token({ sub: 'alice' }), { alg }, pair.publicKey);
    for (const keys of [[pem(pair)], [jwk(pair, 'one')]]) {
      const access = await open(keys).authorize(requestOf(token));
      expect(access.claims.sub).toBe('alice');
      expect(access.token).toBe(token);
    }
  });

  it('a token that is only signed → admitted', async () => {
    expect(await reasonOf(issuer.token())).toBe('accepted');
  });

  it('without the option → encrypted_token', async () => {
    const server = createResourceServer({ issuers: [issuer], audience: issuer.audience });
    expect(await reasonOf(await encrypt(issuer.token()), server)).toBe('encrypted_token');
  });

  it('a DPoP proof is for the encrypted token, like the client sent it', async () => {
    const client = issuer.dpopClient();
    const url = 'https://api.test/';
    const inner = issuer.token({ cnf: { jkt: client.jkt } });
    const token = await encrypt(inner);
    const call = (of: string) => {
      const proof = client.proof({ url, token: of });
      return open().judge(new Request(url, { headers: { authorization: `DPoP ${token}`, dpop: proof } }));
    };
    expect(await call(token)).toMatchObject({ scheme: 'DPoP' });
    expect(await call(inner)).toMatchObject({ reason: 'proof_token_mismatch' });
  });

  it.each([
    ['an expired JWT', () => issuer.flawed('expired'), 'expired'],
    ['a JWT with another signature', () => issuer.flawed('invalid_signature'), 'invalid_signature'],
    ['a JWT for another audience', () => issuer.flawed('invalid_audience'), 'invalid_audience'],
    ['an unsigned JWT', () => `${Buffer.from('{"alg":"none"}').toString('base64url')}.e30.AA`, 'unsupported_alg'],
    ['a string without dots', () => 'opaque', 'malformed_token'],
  ])('%s inside → the refusal of the inner token', async (_name, create, reason) => {
    const token = await encrypt(create());
    expect(await reasonOf(token)).toBe(reason);
    const { verdict, reason: explained } = await explain(open(), requestOf(token));
    expect([verdict, explained]).toEqual(['refused', reason]);
  });

  it('an encrypted token inside → malformed_token: it must be signed', async () => {
    expect(await reasonOf(await encrypt(await encrypt(issuer.token())))).toBe('malformed_token');
  });

  it('explain: an encrypted token → admitted', async () => {
    expect((await explain(open(), requestOf(await encrypt(issuer.token())))).verdict).toBe('admitted');
  });

  it('more than 16 KiB → token_too_large, before decryption', async () => {
    expect(await reasonOf(await encrypt(issuer.token({ long: 'x'.repeat(16_384) })))).toBe('token_too_large');
  });

  it('a header written by hand → admitted, so that the following refusals are about the header', async () => {
    expect(await reasonOf(encryptRaw(JSON.stringify(header), Buffer.from(issuer.token())))).toBe('accepted');
  });

  it.each([
    ['zip', JSON.stringify({ ...header, zip: 'DEF' }), deflateRawSync(issuer.token())],
    ['zip without compression', JSON.stringify({ ...header, zip: '' }), Buffer.from(issuer.token())],
    ['crit', JSON.stringify({ ...header, crit: ['exp'], exp: 1 }), Buffer.from(issuer.token())],
    ['a duplicate member', '{"alg":"RSA-OAEP-256","enc":"A256GCM","alg":"RSA-OAEP-256"}', Buffer.from(issuer.token())],
    ['a header that is not JSON', 'header', Buffer.from(issuer.token())],
  ])('%s → encrypted_token', async (_name, headerText, plaintext) => {
    expect(await reasonOf(encryptRaw(headerText, plaintext))).toBe('encrypted_token');
  });

  it.each([
    ['RSA-OAEP', { alg: 'RSA-OAEP' }],
    ['A128GCM', { enc: 'A128GCM' }],
    ['A256CBC-HS512', { enc: 'A256CBC-HS512' }],
  ])('%s → encrypted_token', async (_name, more) => {
    expect(await reasonOf(await encrypt(issuer.token(), more))).toBe('encrypted_token');
  });

  it('a changed ciphertext, an empty one, other parts missing → encrypted_token', async () => {
    const parts = (await encrypt(issuer.token())).split('.');
    for (const place of [1, 2, 3, 4]) {
      const { length } = parts[place] ?? '';
      for (const changed of ['', randomBytes(length).toString('base64url').slice(0, length)]) {
        expect(await reasonOf(parts.with(place, changed).join('.')), `${place}`).toBe('encrypted_token');
      }
    }
    expect(await reasonOf('....')).toBe('encrypted_token');
  });
});

describe('rotation', () => {
  it('tokens for the current and the previous key → admitted; for a removed key → encrypted_token', async () => {
    const inner = issuer.token();
    for (const more of [{}, { kid: 'previous' }]) {
      const token = await encrypt(inner, more);
      expect(await reasonOf(token, open([jwk(otherRsa, 'current'), jwk(rsa, 'previous')]))).toBe('accepted');
      expect(await reasonOf(token, open([pem(otherRsa), pem(rsa)]))).toBe('accepted');
      expect(await reasonOf(token, open([jwk(otherRsa, 'current')]))).toBe('encrypted_token');
    }
  });

  it('the kid of another key → encrypted_token', async () => {
    const token = await encrypt(issuer.token(), { kid: 'other' });
    expect(await reasonOf(token, open([jwk(rsa, 'previous')]))).toBe('encrypted_token');
  });
});

it.each([
  ['no key', { keys: [] }, /^decryption: write at least one key$/],
  [
    'a public key',
    { keys: [rsa.publicKey.export({ type: 'spki', format: 'pem' })] },
    /^decryption: write a private key/,
  ],
  ['an Ed25519 key', { keys: [pem(generateKeyPairSync('ed25519'))] }, /^decryption: write RSA or EC keys$/],
  ['a misspelled member', { key: [pem(rsa)] }, /there is no key;/],
])('%s → TypeError at creation', (_name, decryption, message) => {
  const create = () => createResourceServer({ issuers: [issuer], audience: 'a', decryption: decryption as never });
  expect(create).toThrow(TypeError);
  expect(create).toThrow(message);
});

it('without jose → ready() and an encrypted token reject with what to install', async () => {
  vi.resetModules();
  vi.doMock('jose', () => {
    throw new Error('not installed');
  });
  const { createDecryption } = await import('../../../src/core/introspection/decryption.ts');
  const decryption = createDecryption({ keys: [pem(rsa)] });
  await expect(decryption.load()).rejects.toThrow(/npm install jose/);
  await expect(decryption.decrypt(await encrypt(issuer.token()))).rejects.toThrow(/npm install jose/);
});
