import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import { expect, test } from 'vitest';
import { type LocalIdpOptions, startLocalIdp } from '../../src/dev/provider/local-idp.ts';
import { makeSigningKey } from '../../src/dev/provider/signing-key.ts';
import type { TokenOptions } from '../../src/dev/tokens/token-options.ts';
import { findFreePort } from '../../tools/shared/network.js';
import { useFolder } from '../support/folder.ts';
import { idpOptions, useLocalIdp } from '../support/local-idp.ts';

const { audience, customClaim } = idpOptions;
const { idp, cacheFolder, call } = await useLocalIdp({ makeKey: makeSigningKey });
const others = useFolder();

/** Starts another provider, in the same folder by default. */
const start = (options: Partial<LocalIdpOptions> = {}) => startLocalIdp({ ...idpOptions, cacheFolder, ...options });

async function readKeys() {
  const response = await call(`${idp.issuer}.well-known/jwks.json`);
  return (await response.json()) as JSONWebKeySet; // jose checks what it uses
}

async function verify(token: string, checks: { readonly audience?: string; readonly issuer?: string } = {}) {
  const keys = createLocalJWKSet(await readKeys());
  return jwtVerify(token, keys, { audience, issuer: idp.issuer, algorithms: ['RS256'], typ: 'at+jwt', ...checks });
}

test('issuer → https, localhost, trailing slash; domain → the same without them', () => {
  expect(idp.issuer).toMatch(/^https:\/\/localhost:\d+\/$/);
  expect(`https://${idp.domain}/`).toBe(idp.issuer);
});

test('discovery → this issuer, and the key set at its well-known place', async () => {
  const response = await call(`${idp.issuer}.well-known/openid-configuration`);
  expect(await response.json()).toMatchObject({
    issuer: idp.issuer,
    jwks_uri: `${idp.issuer}.well-known/jwks.json`,
    grant_types_supported: expect.arrayContaining(['authorization_code', 'client_credentials']),
    code_challenge_methods_supported: ['S256'],
    dpop_signing_alg_values_supported: expect.arrayContaining(['ES256']),
  });
});

test('key set → RSA signing keys, public members alone', async () => {
  const { keys } = await readKeys();
  expect(keys).toHaveLength(1);
  for (const key of keys) {
    expect(key).toMatchObject({ kty: 'RSA', use: 'sig', alg: 'RS256', kid: expect.stringMatching(/./) });
    for (const secret of ['d', 'p', 'q', 'dp', 'dq', 'qi']) expect(key).not.toHaveProperty(secret);
  }
});

test('notices → for development only', () => expect(idp.notices[0]).toContain('for development only'));

test('client credentials → RS256 JWT with the custom claim, without scope, permissions and e-mail', async () => {
  const { payload } = await verify(await idp.token());
  expect(payload).toMatchObject({ [customClaim]: expect.any(String), sub: 'portcullis-service' });
  for (const name of ['scope', 'permissions', 'email']) expect(payload).not.toHaveProperty(name);
});

test.each(['read:messages', 'write:messages', 'read:messages write:messages', 'read:other', ''])(
  'scope "%s" → exactly this scope',
  async (scope) => {
    const { payload } = await verify(await idp.token({ scope }));
    expect(payload['scope']).toBe(scope);
  },
);

test.each<[TokenOptions, string]>([
  [{ validity: 'expired' }, 'ERR_JWT_EXPIRED'],
  [{ validity: 'not-yet-valid' }, 'ERR_JWT_CLAIM_VALIDATION_FAILED'],
  [{ audience: 'https://other.example/' }, 'ERR_JWT_CLAIM_VALIDATION_FAILED'],
  [{ issuer: 'https://other.example/' }, 'ERR_JWT_CLAIM_VALIDATION_FAILED'],
  [{ key: 'unknown' }, 'ERR_JWKS_NO_MATCHING_KEY'],
])(
  'order %j → refused with %s',
  async (order, code) => await expect(verify(await idp.token(order))).rejects.toMatchObject({ code }),
);

test('an odd token is odd in the ordered way alone', async () => {
  const elsewhere = { audience: 'https://other.example/', issuer: 'https://issuer.example/' };
  const token = await idp.token({ ...elsewhere, scope: 'read:messages' });
  const { payload } = await verify(token, elsewhere);
  expect(payload).toMatchObject({ scope: 'read:messages', sub: 'portcullis-service' });
});

test('two tokens with an unknown key → the same key, still not published', async () => {
  const kid = async () => {
    const [header = ''] = (await idp.token({ key: 'unknown' })).split('.');
    return JSON.parse(Buffer.from(header, 'base64url').toString()).kid;
  };
  const first = await kid();
  expect(await kid()).toBe(first);
  expect((await readKeys()).keys.map((key) => key.kid)).not.toContain(first);
});

test.each(['attacker.example', 'attacker.example:443', 'localhost.attacker.example', 'localhost@attacker.example'])(
  'Host %s → 421',
  async (host) => {
    for (const path of ['.well-known/openid-configuration', 'dev/token', 'interaction/1']) {
      expect((await call(`${idp.issuer}${path}`, { headers: { host } })).status).toBe(421);
    }
  },
);

test('other address of this machine → nothing listens there', async () => {
  const { port } = new URL(idp.issuer);
  const socket = connect(Number(port), '127.0.0.2');
  const outcome = await new Promise((resolve) => socket.once('error', resolve).once('connect', () => resolve('open')));
  socket.destroy();
  expect(outcome).toMatchObject({ code: 'ECONNREFUSED' });
});

test('a second start → the same certificate and secret, other keys', async () => {
  const before = readFileSync(idp.certificateFile, 'utf8');
  const second = await start();
  try {
    expect(second.certificateFile).toBe(idp.certificateFile);
    expect(readFileSync(second.certificateFile, 'utf8')).toBe(before);
    await expect(verify(await second.token(), { issuer: second.issuer })).rejects.toMatchObject({
      code: 'ERR_JWKS_NO_MATCHING_KEY',
    });
  } finally {
    await second.close();
  }
});

test('cache folder → for this user alone; the running file goes at stop', async () => {
  const base = await mkdtemp(join(others, 'a-'));
  const started = await startLocalIdp({ ...idpOptions, environment: { XDG_CACHE_HOME: base } });
  const folder = join(base, 'portcullis');
  const mode = async (path: string) => (await stat(join(folder, path))).mode & 0o777;
  expect(await readdir(join(folder, 'running'))).toEqual([`${new URL(started.issuer).port}.json`]);
  expect(await mode('.')).toBe(0o700);
  expect(await mode('identity/key.pem')).toBe(0o600);
  expect(await mode('identity/client-secret')).toBe(0o600);
  await started.close();
  expect(await readdir(join(folder, 'running'))).toEqual([]);
});

test('port that does not exist → says which and how to choose another', () =>
  expect(start({ port: 70_000 })).rejects.toThrow(/^Port 70000 .* cannot be opened\. .*--idp-port/));

test('cache folder that cannot be made → LocalIdpFailure, says so', () =>
  expect(start({ cacheFolder: idp.certificateFile })).rejects.toMatchObject({
    ...{ name: 'LocalIdpFailure', message: expect.stringContaining('Set XDG_CACHE_HOME') },
  }));

test('a start that fails late → leaves no listener behind', async () => {
  const port = await findFreePort();
  const folder = await mkdtemp(join(others, 'b-'));
  await mkdir(join(folder, 'running', `${port}.json`), { recursive: true });
  const options = { port, cacheFolder: folder };
  await expect(start(options)).rejects.toMatchObject({ code: 'EISDIR' });
  await rm(join(folder, 'running'), { recursive: true });
  await (await start(options)).close();
});

test('open connections → closed at stop, in the middle of a handshake too', async () => {
  const started = await start();
  const socket = connect(Number(new URL(started.issuer).port), '127.0.0.1');
  socket.on('error', () => {});
  await new Promise((resolve) => socket.once('connect', resolve));
  const ended = new Promise((resolve) => socket.once('close', resolve));
  await started.close();
  await ended;
});

test('a certificate that ends within a day → a new one', async () => {
  const folder = await mkdtemp(join(others, 'c-'));
  const year = 365 * 86_400;
  const readAt = async (now: number) => {
    const started = await start({ cacheFolder: folder, now: () => now });
    await started.close();
    return readFileSync(started.certificateFile, 'utf8');
  };
  const now = Date.now() / 1000;
  const first = await readAt(now);
  expect(await readAt(now + year - 2 * 86_400)).toBe(first);
  expect(await readAt(now + year - 86_400)).not.toBe(first);
});
