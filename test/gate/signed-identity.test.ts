import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { createAssertionVerifier } from '../../src/core/assertion/assertion-verifier.ts';
import { useFolder } from '../support/folder.ts';
import { lastHeaders, useUpstream } from '../support/gate-edge.ts';
import { openGate, useGate } from '../support/gate-process.ts';
import { exchange, readStatuses, send } from '../support/http-client.ts';
import { sendLogout } from '../support/logout.ts';
import { needs } from '../support/programs.ts';
import { awaitReady } from '../support/service-process.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { startRawUpstream } from './proxied.ts';

const issuer = 'https://gate.example/';
const audience = 'https://orders.internal/';
const keysPath = '/.well-known/portcullis/jwks.json';
const folder = useFolder();
const keyFile = join(folder, 'signing.pem');
const nextFile = join(folder, 'next.pem');

function writeKey(path: string): void {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  writeFileSync(path, privateKey.export({ type: 'pkcs8', format: 'pem' }));
}
for (const file of [keyFile, nextFile]) writeKey(file);
const provider = await useTestProvider();
const upstream = await useUpstream();
const authorization = `Bearer ${await provider.sign()}`;

function writeRules(assertion: object = {}) {
  return {
    issuers: { staff: { issuer: provider.issuer, audience: provider.audience } },
    assertion: { issuer, audience, header: 'X-Auth-Assertion', ...assertion },
    rules: [
      { id: 'orders', path: '/orders/**' },
      { id: 'bound', path: '/bound/**', assertion: { bind: true } },
      { id: 'shop', path: '/shop', assertion: { audience: 'https://shop.internal/' } },
      { id: 'off', path: '/off', assertion: 'off' },
      { id: 'open', path: '/open', access: 'open' },
      { id: 'optional', path: '/optional', access: 'optional' },
      { id: 'watched', path: '/watched', mode: 'report', scopes: ['other'] },
    ],
  };
}

async function readKeys(url: string) {
  const { status, headers, body } = await send(url, keysPath);
  expect(status).toBe(200);
  expect(headers.get('content-type')).toBe('application/jwk-set+json');
  expect(headers.get('cache-control')).toBe('public, max-age=300');
  return JSON.parse(body) as { readonly keys: readonly { readonly kid: string }[] };
}

describe('the gate as the proxy', async () => {
  const gate = await useGate(provider, writeRules({ claims: ['email'] }), {
    UPSTREAM: `http://${upstream.address}`,
    ASSERTION_KEY: keyFile,
    ASSERTION_KEYS_PUBLISHED: nextFile,
  });

  const forward = async (path: string, headers: readonly string[] = ['Authorization', authorization]) => {
    upstream.received.length = 0;
    expect(await send(gate.url, path, { headers })).toMatchObject({ status: 200 });
    return lastHeaders(upstream)['x-auth-assertion'];
  };
  const verifierFor = async (expected = audience) =>
    createAssertionVerifier({ issuer, audience: expected, jwks: await readKeys(gate.url) });

  it('an admitted token → an assertion that the published keys verify', async () => {
    const { verify } = await verifierFor();
    const claims = await verify(String(await forward('/orders/1')));
    expect(claims).toMatchObject({ iss: issuer, aud: audience, caller_iss: provider.issuer, rule: 'orders' });
    expect(claims.exp - claims.iat).toBeLessThanOrEqual(60);
  });

  it('an audience of the rule → that audience', async () => {
    const { verify } = await verifierFor('https://shop.internal/');
    await expect(verify(String(await forward('/shop')))).resolves.toMatchObject({ rule: 'shop' });
  });

  it('bind → the request that the client sent, and no other', async () => {
    const { verify } = await verifierFor();
    const assertion = String(await forward('/bound/1?page=2'));
    const request = { method: 'GET', url: `${gate.url}/bound/1` };
    await expect(verify(assertion, request)).resolves.toMatchObject({ htm: 'GET', htu: `${gate.url}/bound/1` });
    await expect(verify(assertion, { ...request, url: `${gate.url}/bound/2` })).rejects.toMatchObject({
      reason: 'assertion_request_mismatch',
    });
  });

  it.each([
    ['open', '/open', [] as readonly string[]],
    ['optional, without a token', '/optional', []],
    ['off', '/off', undefined],
    ['report mode, for a caller who would be refused', '/watched', undefined],
  ])('%s → no assertion', async (_rule, path, headers) => {
    expect(await forward(path, headers)).toBeUndefined();
  });

  it('the keys: any host, GET and HEAD, also on the admin listener; not the private part', async () => {
    const keys = await readKeys(gate.url);
    expect(keys.keys).toHaveLength(2);
    expect(JSON.stringify(keys)).not.toContain('"d"');
    expect(await readKeys(gate.adminUrl ?? '')).toEqual(keys);
    expect(await send(gate.url, keysPath, { headers: ['Host', 'other.example'] })).toMatchObject({ status: 200 });
    expect(await send(gate.url, keysPath, { method: 'HEAD' })).toMatchObject({ status: 200, body: '' });
    const refused = await send(gate.url, keysPath, { method: 'POST' });
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  it('two exchanged key files and SIGHUP → the next key signs, and no assertion is refused', async () => {
    const before = await readKeys(gate.url);
    const { verify } = await verifierFor();
    const [signing, next] = [readFileSync(keyFile), readFileSync(nextFile)];
    writeFileSync(keyFile, next);
    writeFileSync(nextFile, signing);
    gate.signal('SIGHUP');
    const signedBy = async (): Promise<unknown> => {
      const assertion = String(await forward('/orders/1'));
      await verify(assertion);
      return JSON.parse(Buffer.from(assertion.split('.')[0] ?? '', 'base64url').toString()).kid;
    };
    await expect.poll(signedBy).toBe(before.keys[1]?.kid);
  });

  it('an unusable key and SIGHUP → the old key signs, and one line names the setting', async () => {
    const key = readFileSync(keyFile);
    writeFileSync(keyFile, 'not a key');
    gate.signal('SIGHUP');
    const line = await gate.findLog(({ event }) => event === 'rules_kept');
    expect(line).toMatchObject({ level: 'error', problem: expect.stringContaining('ASSERTION_KEY') });
    const { verify } = await verifierFor();
    await expect(verify(String(await forward('/orders/1')))).resolves.toMatchObject({ rule: 'orders' });
    writeFileSync(keyFile, key);
  });
});

describe('the gate beside a proxy', async () => {
  const gate = await useGate(provider, writeRules(), { ASSERTION_KEY: keyFile });
  const assertionOf = async (path: string) =>
    String((await gate.ask({ path, headers: ['Authorization', authorization] })).headers.get('x-auth-assertion'));

  it('an admitted token → the assertion in the response; an open rule → an empty header', async () => {
    const assertion = await assertionOf('/orders/1');
    const { verify } = createAssertionVerifier({ issuer, audience, jwks: await readKeys(gate.url) });
    await expect(verify(assertion)).resolves.toMatchObject({ rule: 'orders' });
    expect((await gate.ask({ path: '/open' })).headers.get('x-auth-assertion')).toBe('');
  });

  it('bind → the URL that the client called, not the URL of the subrequest', async () => {
    const assertion = await assertionOf('/bound/1');
    const { verify } = createAssertionVerifier({ issuer, audience, jwks: await readKeys(gate.url) });
    const request = { method: 'GET', url: 'https://api.example/bound/1' };
    await expect(verify(assertion, request)).resolves.toMatchObject({ rule: 'bound' });
  });

  it('the function of the documentation for njs → 204; another signature, audience or no header → 401', async () => {
    const assertion = await assertionOf('/orders/1');
    const keysFile = join(folder, 'gate-keys.json');
    writeFileSync(keysFile, JSON.stringify(await readKeys(gate.url)));
    const page = readFileSync('docs/gate/identity.md', 'utf8');
    const code = /```js\n(import fs from 'fs';\n[\s\S]*?)```/.exec(page)?.[1] ?? '';
    const load = async (name: string, text: string) => {
      const file = join(folder, name);
      writeFileSync(file, text.replace('/etc/nginx/gate-keys.json', keysFile));
      const loaded = (await import(file)) as { readonly default: { check(request: object): Promise<void> } };
      return async (sent: string | undefined): Promise<number> => {
        let status = 0;
        const respond = (code: number) => {
          status = code;
        };
        await loaded.default.check({ headersIn: { 'X-Auth-Assertion': sent }, return: respond });
        return status;
      };
    };
    const check = await load('assertion.mjs', code);
    expect(await check(assertion)).toBe(204);
    expect(await check(`${assertion.slice(0, -6)}AAAAAA`)).toBe(401);
    expect(await check(`${assertion}.x`)).toBe(401);
    expect(await check(undefined)).toBe(401);
    const other = await load('other.mjs', code.replace('https://orders.internal/', 'https://shop.internal/'));
    expect(await other(assertion)).toBe(401);
  });

  it('PyJWT of Debian verifies it with the six lines of the documentation', needs('python3-jwt'), async () => {
    const page = readFileSync('docs/gate/identity.md', 'utf8');
    const code = /```python\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
    const script = `${code.replace('https://gate.example/.well-known', `${gate.url}/.well-known`)}
import sys, json
print(json.dumps(read_identity(sys.argv[1])))`;
    // Not execFileSync: the gate is in this process, and sends the keys.
    const run = (assertion: string) => promisify(execFile)('/usr/bin/python3', ['-c', script, assertion]);
    const assertion = await assertionOf('/orders/1');
    expect(JSON.parse((await run(assertion)).stdout)).toMatchObject({ rule: 'orders', iss: issuer });
    await expect(run(`${assertion.slice(0, -6)}AAAAAA`)).rejects.toThrow(/InvalidSignatureError/);
  });
});

it('rules with assertions and no ASSERTION_KEY → 78, one line', async () => {
  const stderr = expect.stringContaining('Set ASSERTION_KEY');
  await expect(openGate(provider, writeRules())).rejects.toMatchObject({ end: { code: 78 }, stderr });
});

describe('the bytes of the gate as the proxy', async () => {
  const accept = 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=';
  const agreed = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`;
  const upstream = await startRawUpstream((socket, bytes) => {
    const arrived = bytes.split(/(?=(?:GET|POST) \/)/).at(-1) ?? '';
    if (!arrived.endsWith('\r\n\r\n')) return;
    if (/^upgrade:/im.test(arrived)) socket.end(agreed);
    else socket.write('HTTP/1.1 204 No Content\r\n\r\n');
  });
  const UPSTREAM = upstream.url;
  const { rules, ...members } = writeRules();
  const gate = await useGate(
    provider,
    { ...members, rules: [...rules, { id: 'deny', path: '/.well-known/**', access: 'deny' }] },
    { ASSERTION_KEY: keyFile, LOGOUT_CLIENTS: 'app', TRUST_PROXY: '192.0.2.1', UPSTREAM },
  );
  afterAll(() => upstream.close());
  await awaitReady(gate);
  /** Bytes that reached the upstream since the last request began. */
  let before: readonly number[] = [];
  const arrived = (): string => upstream.arrivals.map((bytes, at) => bytes.slice(before[at] ?? 0)).join('');

  const last = 'Connection: close\r\n';
  const bearer = (token: string): string => `Authorization: Bearer ${token}\r\n`;
  async function forward(head: string): Promise<readonly number[]> {
    before = upstream.arrivals.map(({ length }) => length);
    return readStatuses(await exchange(gate.port, `${head}\r\n`));
  }
  const assertions = (): readonly string[] =>
    [...arrived().matchAll(/^x-auth-assertion: *(.*)\r$/gim)].map(([, value]) => value ?? '');
  const verify = async (assertion: string | undefined) => {
    const jwks = JSON.parse((await send(gate.url, keysPath)).body);
    return createAssertionVerifier({ issuer, audience, jwks }).verify(String(assertion));
  };

  describe('a client that forges or strips the assertion', () => {
    const get = (path: string, more: string) => `GET ${path} HTTP/1.1\r\nHost: api.example\r\n${more}`;

    it.each([
      ['as hop-by-hop', 'Connection: close, X-Auth-Assertion, X-Auth-Subject\r\n'],
      ['as hop-by-hop, in another header', 'Connection: close\r\nConnection: x-auth-assertion\r\n'],
      ['by its name and another spelling', `${last}X-Auth-Assertion: forged\r\nx_auth.assertion: forged\r\n`],
      ['as proxy-connection', `${last}Proxy-Connection: X-Auth-Assertion\r\n`],
    ])('%s → the upstream has exactly one, of the gate', async (_title, more) => {
      const token = await provider.sign({ sub: 'ann' });
      expect(await forward(get('/orders/1', bearer(token) + more))).toEqual([204]);
      const [assertion, ...others] = assertions();
      expect(others).toEqual([]);
      expect(arrived()).not.toContain('forged');
      expect(await verify(assertion)).toMatchObject({ sub: 'ann', rule: 'orders' });
      expect(arrived()).toMatch(/^x-auth-subject: ann\r$/im);
    });

    it.each([..."!#$%&'*+.^_`|~", '-'])('the name with %s, twice, at an open rule → removed', async (each) => {
      const name = ['X', 'Auth', 'Assertion'].join(each);
      const forged = `${name}: forged\r\n${name.toUpperCase()}: forged\r\n`;
      expect(await forward(get('/open', forged + last))).toEqual([204]);
      expect(arrived()).not.toContain('forged');
    });

    it('with a handshake of WebSocket → the assertion of the gate alone', async () => {
      const token = await provider.sign({ sub: 'ann' });
      const handshake =
        'Connection: Upgrade, X-Auth-Assertion\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
      expect(await forward(get('/orders/socket', `${bearer(token)}X-Auth-Assertion: forged\r\n${handshake}`))).toEqual([
        101,
      ]);
      expect(arrived()).not.toContain('forged');
      expect(await verify(assertions()[0])).toMatchObject({ sub: 'ann' });
    });
  });

  describe('a cached assertion', () => {
    it('a session that ended while its assertion was cached → 401, and the upstream gets nothing', async () => {
      const token = await provider.sign({ sid: 's1', sub: 'ann' });
      const request = `GET /orders/1 HTTP/1.1\r\nHost: api.example\r\n${bearer(token)}${last}`;
      for (let i = 0; i < 2; i++) expect(await forward(request)).toEqual([204]);
      expect(await sendLogout(provider, gate, 's1')).toBe(200);
      expect([await forward(request), arrived()]).toEqual([[401], '']);
    });
  });

  describe('the published keys', () => {
    it.each([
      ['a trailing slash', `${keysPath}/`],
      ['an encoded character', keysPath.replace('jwks', 'j%77ks')],
      ['two slashes', `/${keysPath}`],
      ['capitals', keysPath.toUpperCase()],
    ])('%s → the rules decide', async (_title, path) => {
      const { status, headers } = await send(gate.url, path);
      expect(status).toBeGreaterThanOrEqual(400);
      expect(headers.get('content-type')).not.toBe('application/jwk-set+json');
    });

    it('with a query, an invalid token and If-None-Match → the keys', async () => {
      const headers = ['Authorization', 'Bearer x.y.z', 'If-None-Match', '*'];
      const { status, body } = await send(gate.url, `${keysPath}?v=1`, { headers });
      expect([status, body]).toEqual([200, expect.stringMatching(/^\{"keys":\[\{/)]);
    });

    it('rules without assertion → the rules decide', async () => {
      const { issuers } = writeRules();
      const plain = await openGate(provider, { issuers, rules: [{ id: 'all', path: '/**' }] }, { UPSTREAM });
      onTestFinished(async () => void (await plain.stop()));
      expect((await send(plain.url, keysPath)).status).toBe(401);
    });
  });
});
