import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect, rootCertificates } from 'node:tls';
import { promisify } from 'node:util';
import { Agent, fetch, type RequestInit } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { createKeySet } from '../../src/core/keys/key-set.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createTestIssuer, type ListeningIssuer } from '../../src/testing/index.ts';
import { useFolder } from '../support/folder.ts';
import { passStart } from '../support/pass-start.ts';
import { bearer, judge } from './judge.ts';

const run = promisify(execFile);
const issuer = createTestIssuer();
let tls: ListeningIssuer;
const folder = useFolder();
let caFile: string;

beforeAll(async () => {
  tls = await issuer.listen();
  caFile = join(folder, 'ca.pem');
  await writeFile(caFile, tls.ca);
});
afterAll(() => tls.close());
afterEach(() => void vi.useRealTimers());

/** A resource server that fetches the keys of the issuer. */
function createServer({ issuer: url, audience, ca }: ListeningIssuer) {
  const keys = createKeySet({ issuer: url, ca, environment: {} });
  return { keys, server: createResourceServer({ issuers: [{ issuer: url, keys }], audience }) };
}

/** A client that trusts the issuer. */
function createClient(ca: string) {
  const dispatcher = new Agent({ connect: { ca: [...rootCertificates, ca] } });
  const client = (url: string, init: RequestInit) => fetch(url, { ...init, dispatcher });
  return { client, close: () => dispatcher.close() };
}

/** The answer to a GET by a client that trusts the issuer. */
async function get(path: string): Promise<{ readonly status: number; readonly body: unknown }> {
  const { client, close } = createClient(tls.ca);
  const response = await client(`${tls.issuer}${path}`, {});
  const answer = { status: response.status, body: await response.json() };
  await close();
  return answer;
}

describe('an issuer that listens', () => {
  it('discovery → its tokens are accepted, flawed ones refused', async () => {
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

  it('a different name than the issuer in memory, with the same keys', async () => {
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

  it('a rotation → the current keys; every other path → 404', async () => {
    expect(await get('.well-known/jwks.json')).toEqual({ status: 200, body: issuer.jwks });
    issuer.rotate();
    const { status, body } = await get('.well-known/jwks.json');
    expect({ status, body }).toEqual({ status: 200, body: tls.jwks });
    expect(tls.jwks.keys).toHaveLength(3);
    expect((await get('token')).status).toBe(404);
  });

  it('a client without its certificate → refused', async () => {
    const keys = createKeySet({ issuer: tls.issuer, environment: {} });
    await expect(keys.ready()).rejects.toMatchObject({ kind: 'tls' });
    keys.close();
  });

  it('its certificate → for localhost, signs no other', () => {
    const certificate = new X509Certificate(tls.ca);
    expect(certificate.ca).toBe(false);
    expect(certificate.checkHost('localhost')).toBe('localhost');
    expect(certificate.checkIP('127.0.0.1')).toBe('127.0.0.1');
  });

  it('a test clock set to another time → accepted', async () => {
    vi.useFakeTimers({ now: new Date('1999-01-01'), toFake: ['Date'] });
    await using other = await createTestIssuer().listen();
    const { keys, server } = createServer(other);
    expect(await judge(server, bearer(other.token()))).toBe('accepted');
    keys.close();
  });
});

describe('opaque tokens of an issuer that listens', () => {
  /** What a resource server in another process, which is told of the endpoint in its environment, makes of tokens. */
  async function judgeElsewhere(tokens: readonly string[]): Promise<unknown> {
    const script = `
      import { AccessError, createIntrospection, createResourceServer } from 'portcullis';
      const { account, audience } = JSON.parse(process.env.TEST_ISSUER);
      const { issuer } = account;
      const introspection = createIntrospection(account);
      const server = createResourceServer({ issuer, audience, introspection });
      const judged = process.argv.slice(1).map(async (token) => {
        const headers = { authorization: 'Bearer ' + token };
        const access = await server.judge(new Request('https://api.test/', { headers }), { scopes: ['read'] });
        return access instanceof AccessError ? access.reason : access.claims.sub;
      });
      console.log(JSON.stringify(await Promise.all(judged)));
      process.exit();`;
    const TEST_ISSUER = JSON.stringify({ account: tls.introspectionAccount, audience: tls.audience });
    const env = { PATH: process.env['PATH'], NODE_EXTRA_CA_CERTS: caFile, TEST_ISSUER };
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script, '--', ...tokens], { env });
    return JSON.parse(stdout);
  }

  it('another process: active, revoked, without the scope, of another issuer → each its result', async () => {
    const read = { sub: 'alice', scope: 'read' };
    const revoked = tls.opaqueToken(read);
    tls.revoke(revoked);
    const strangers = [createTestIssuer().opaqueToken(read), issuer.opaqueToken(read)];
    let active = tls.opaqueToken(read);
    while (!active.startsWith('-')) active = tls.opaqueToken(read); // one in 64 does, and looks like an option of Node
    const tokens = [active, revoked, tls.opaqueToken({ scope: 'write' }), ...strangers];
    expect(await judgeElsewhere(tokens)).toEqual([
      'alice',
      'inactive_token',
      'insufficient_scope',
      'inactive_token',
      'invalid_issuer', // the one in memory has another address
    ]);
  });

  it('another client → 401; another method → 405', async () => {
    const { endpoint, clientId, clientSecret } = tls.introspectionAccount;
    const { client, close } = createClient(tls.ca);
    const token = tls.opaqueToken();
    const ask = async (method: string, secret: string) => {
      const authorization = `Basic ${Buffer.from(`${clientId}:${secret}`).toString('base64')}`;
      const body = method === 'POST' ? { body: new URLSearchParams({ token }).toString() } : {};
      const type = { 'content-type': 'application/x-www-form-urlencoded' };
      const response = await client(endpoint, { method, headers: { authorization, ...type }, ...body });
      return [response.status, await response.json()];
    };
    expect(await ask('POST', clientSecret)).toMatchObject([200, { active: true, iss: tls.issuer }]);
    expect(await ask('POST', 'another')).toEqual([401, { error: 'invalid_client' }]);
    expect(await ask('GET', clientSecret)).toEqual([405, { error: 'invalid_request' }]);
    expect((await get('.well-known/openid-configuration')).body).toMatchObject({ introspection_endpoint: endpoint });
    await close();
  });

  it('a client that disconnects during its request → the issuer keeps working', async () => {
    const { port } = new URL(tls.issuer);
    const { clientId, clientSecret } = tls.introspectionAccount;
    const authorization = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`;
    const socket = connect({ port: Number(port), host: '127.0.0.1', servername: 'localhost', ca: tls.ca });
    await once(socket, 'secureConnect');
    socket.write(`POST /introspect HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\n`);
    socket.end('Content-Length: 100\r\n\r\ntoken=');
    await once(socket.resume(), 'close');
    expect(await judgeElsewhere([tls.opaqueToken({ sub: 'bob', scope: 'read' })])).toEqual(['bob']);
  });
});

it.each([
  [
    'close, any number of times',
    async (other: ListeningIssuer) => void (await Promise.all([other.close(), other.close()])),
  ],
  ['the end of its block', async (other: ListeningIssuer) => other[Symbol.asyncDispose]()],
])('close: by %s: connections are dropped and refused', async (_way, end) => {
  const other = await createTestIssuer({ alg: 'ES256' }).listen();
  const { keys } = createServer(other);
  await keys.ready();
  await end(other);
  keys.close();
  const again = createServer(other).keys;
  await expect(again.ready()).rejects.toMatchObject({ kind: 'network' });
  again.close();
});

describe('without the optional package', () => {
  afterEach(() => {
    vi.doUnmock('@peculiar/x509');
    vi.resetModules();
  });

  it('listen → an error that states what to install; the rest works', async () => {
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
