import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { createKeySet } from '../../src/keys/key-set.ts';
import { createResourceServer } from '../../src/resource-server/resource-server.ts';
import { createTestIssuer, type ListeningIssuer } from '../../src/testing/index.ts';
import { passStart } from '../support/pass-start.ts';
import { bearer, judge } from './judge.ts';

const run = promisify(execFile);
const issuer = createTestIssuer();
let tls: ListeningIssuer;
let folder: string;
let caFile: string;

beforeAll(async () => {
  tls = await issuer.listen();
  folder = await mkdtemp(join(tmpdir(), 'portcullis-issuer-'));
  caFile = join(folder, 'ca.pem');
  await writeFile(caFile, tls.ca);
});
afterAll(async () => {
  await tls.close();
  await rm(folder, { recursive: true });
});
afterEach(() => void vi.useRealTimers());

/** A resource server that fetches the keys of the issuer. */
function createServer({ issuer: url, audience, ca }: ListeningIssuer) {
  const keys = createKeySet({ issuer: url, ca, environment: {} });
  return { keys, server: createResourceServer({ issuers: [{ issuer: url, keys }], audience }) };
}

/** The answer to a GET by another process, which trusts the certificate as an operator would. */
async function get(path: string): Promise<{ readonly status: number; readonly body: unknown }> {
  const script = `
    const response = await fetch(process.argv[1]);
    console.log(JSON.stringify({ status: response.status, body: await response.json() }));`;
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: caFile };
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script, `${tls.issuer}${path}`], {
    env,
  });
  return JSON.parse(stdout);
}

describe('an issuer that listens', () => {
  it('is found by discovery: its tokens are accepted, flawed ones refused', async () => {
    const { keys, server } = createServer(tls);
    await passStart();
    expect(await judge(server, bearer(tls.token()))).toBe('accepted');
    expect(await judge(server, bearer(tls.flawed('invalid_issuer')))).toBe('invalid_issuer');
    expect(await judge(server, bearer(tls.flawed('key_not_usable')))).toBe('key_not_usable');
    expect(await judge(server, bearer(tls.flawed('unknown_kid')))).toBe('unknown_kid');
    const url = 'https://api.test/messages';
    expect(await judge(server, { headers: tls.dpopClient().headers({ url }) })).toBe('accepted');
    keys.close();
  });

  it('is another issuer than the one in memory, with the same keys', async () => {
    expect(tls.issuer).toMatch(/^https:\/\/localhost:\d+\/$/);
    expect(tls).toMatchObject({ audience: issuer.audience, kid: issuer.kid, jwks: issuer.jwks });
    const { keys, server } = createServer(tls);
    expect(await judge(server, bearer(issuer.token()))).toBe('invalid_issuer');
    expect(await judge(server, bearer(issuer.token({ iss: tls.issuer })))).toBe('accepted');
    keys.close();
  });

  it.each(['openid-configuration', 'oauth-authorization-server'])('serves %s', async (name) => {
    expect(await get(`.well-known/${name}`)).toEqual({
      status: 200,
      body: expect.objectContaining({ issuer: tls.issuer, jwks_uri: `${tls.issuer}.well-known/jwks.json` }),
    });
  });

  it('serves the keys as they are now, and nothing else', async () => {
    expect(await get('.well-known/jwks.json')).toEqual({ status: 200, body: issuer.jwks });
    issuer.rotate();
    const { status, body } = await get('.well-known/jwks.json');
    expect({ status, body }).toEqual({ status: 200, body: tls.jwks });
    expect(tls.jwks.keys).toHaveLength(3);
    expect((await get('token')).status).toBe(404);
  });

  it('is refused by whoever was not told of its certificate', async () => {
    const keys = createKeySet({ issuer: tls.issuer, environment: {} });
    await expect(keys.ready()).rejects.toMatchObject({ kind: 'tls' });
    keys.close();
  });

  it('has a certificate for localhost that signs no other', () => {
    const certificate = new X509Certificate(tls.ca);
    expect(certificate.ca).toBe(false);
    expect(certificate.checkHost('localhost')).toBe('localhost');
    expect(certificate.checkIP('127.0.0.1')).toBe('127.0.0.1');
  });

  it('works while the clock of the test is set to another time', async () => {
    vi.useFakeTimers({ now: new Date('1999-01-01'), toFake: ['Date'] });
    await using other = await createTestIssuer().listen();
    const { keys, server } = createServer(other);
    expect(await judge(server, bearer(other.token()))).toBe('accepted');
    keys.close();
  });
});

describe('the end', () => {
  it.each([
    [
      'close, any number of times',
      async (other: ListeningIssuer) => void (await Promise.all([other.close(), other.close()])),
    ],
    ['the end of its block', async (other: ListeningIssuer) => other[Symbol.asyncDispose]()],
  ])('by %s: connections are dropped and refused', async (_way, end) => {
    const other = await createTestIssuer({ alg: 'ES256' }).listen();
    const { keys } = createServer(other);
    await keys.ready();
    await end(other);
    keys.close();
    const again = createServer(other).keys;
    await expect(again.ready()).rejects.toMatchObject({ kind: 'network' });
    again.close();
  });
});

describe('without the optional package', () => {
  afterEach(() => {
    vi.doUnmock('@peculiar/x509');
    vi.resetModules();
  });

  it('says what to install, and the rest works', async () => {
    vi.resetModules();
    vi.doMock('@peculiar/x509', () => {
      throw new Error('Cannot find package');
    });
    const { createTestIssuer: create } = await import('../../src/testing/index.ts');
    const other = create();
    expect(other.token()).toMatch(/^eyJ/);
    const before = Reflect.ownKeys(Reflect);
    await expect(other.listen()).rejects.toThrow(/^listen\(\) needs .* npm install --save-dev @peculiar\/x509$/);
    expect(Reflect.ownKeys(Reflect)).toEqual(before);
  });
});
