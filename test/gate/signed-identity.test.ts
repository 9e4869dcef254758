import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createAssertionVerifier } from '../../src/core/assertion/assertion-verifier.ts';
import { lastHeaders, useUpstream } from '../support/gate-edge.ts';
import { type OpenedGate, openGate } from '../support/gate-process.ts';
import { send } from '../support/http-client.ts';
import { needs } from '../support/programs.ts';
import { ServiceStartError } from '../support/service-process.ts';
import { useTestProvider } from '../support/test-provider.ts';

const issuer = 'https://gate.example/';
const audience = 'https://orders.internal/';
const keysPath = '/.well-known/portcullis/jwks.json';
const folder = mkdtempSync(join(tmpdir(), 'portcullis-assertion-'));
const keyFile = join(folder, 'signing.pem');
const nextFile = join(folder, 'next.pem');

function writeKey(path: string): void {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  writeFileSync(path, privateKey.export({ type: 'pkcs8', format: 'pem' }));
}

writeKey(keyFile);
writeKey(nextFile);
const provider = await useTestProvider();
const upstream = await useUpstream();
const authorization = `Bearer ${await provider.sign()}`;
afterAll(() => rmSync(folder, { recursive: true }));

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

describe('the gate as the proxy', () => {
  let gate: OpenedGate;
  beforeAll(async () => {
    writeKey(keyFile);
    gate = await openGate(provider, writeRules({ claims: ['email'] }), {
      UPSTREAM: `http://${upstream.address}`,
      ASSERTION_KEY: keyFile,
      ASSERTION_KEYS_PUBLISHED: nextFile,
    });
  });
  afterAll(() => gate?.stop());

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

  it.each(['X-Auth-Assertion', 'x_auth_assertion', 'X-AUTH.ASSERTION'])('%s of a client → removed', async (name) => {
    await forward('/open', [name, 'forged']);
    expect(Object.values(lastHeaders(upstream))).not.toContain('forged');
    const assertion = await forward('/orders/1', ['Authorization', authorization, name, 'forged']);
    expect(assertion).toMatch(/^eyJ/);
    expect(Object.values(lastHeaders(upstream))).not.toContain('forged');
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
    await vi.waitFor(async () => {
      for (let i = 0; i < 4; i++) {
        const assertion = String(await forward('/orders/1'));
        await verify(assertion);
        const { kid } = JSON.parse(Buffer.from(assertion.split('.')[0] ?? '', 'base64url').toString());
        expect(kid).toBe(before.keys[1]?.kid);
      }
    }, 20_000);
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

describe('the gate beside a proxy', () => {
  let gate: OpenedGate;
  beforeAll(async () => {
    writeKey(keyFile);
    gate = await openGate(provider, writeRules(), { ASSERTION_KEY: keyFile });
  });
  afterAll(() => gate?.stop());

  it('an admitted token → the assertion in the response; an open rule → an empty header', async () => {
    const { headers } = await gate.ask({ path: '/orders/1', headers: ['Authorization', authorization] });
    const { verify } = createAssertionVerifier({ issuer, audience, jwks: await readKeys(gate.url) });
    await expect(verify(String(headers.get('x-auth-assertion')))).resolves.toMatchObject({ rule: 'orders' });
    expect((await gate.ask({ path: '/open' })).headers.get('x-auth-assertion')).toBe('');
  });

  it('bind → the URL that the client called, not the URL of the subrequest', async () => {
    const { headers } = await gate.ask({ path: '/bound/1', headers: ['Authorization', authorization] });
    const { verify } = createAssertionVerifier({ issuer, audience, jwks: await readKeys(gate.url) });
    const request = { method: 'GET', url: 'https://api.example/bound/1' };
    await expect(verify(String(headers.get('x-auth-assertion')), request)).resolves.toMatchObject({ rule: 'bound' });
  });

  it('the function of the documentation for njs → 204; another signature, audience or no header → 401', async () => {
    const { headers } = await gate.ask({ path: '/orders/1', headers: ['Authorization', authorization] });
    const assertion = String(headers.get('x-auth-assertion'));
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
    const { headers } = await gate.ask({ path: '/orders/1', headers: ['Authorization', authorization] });
    const page = readFileSync('docs/gate/identity.md', 'utf8');
    const code = /```python\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
    const script = `${code.replace('https://gate.example/.well-known', `${gate.url}/.well-known`)}
import sys, json
print(json.dumps(read_identity(sys.argv[1])))`;
    // Not execFileSync: the gate is in this process, and sends the keys.
    const run = (assertion: string) => promisify(execFile)('/usr/bin/python3', ['-c', script, assertion]);
    const assertion = String(headers.get('x-auth-assertion'));
    expect(JSON.parse((await run(assertion)).stdout)).toMatchObject({ rule: 'orders', iss: issuer });
    await expect(run(`${assertion.slice(0, -6)}AAAAAA`)).rejects.toThrow(/InvalidSignatureError/);
  });
});

it('rules with assertions and no ASSERTION_KEY → 78, one line', async () => {
  const error = await openGate(provider, writeRules()).then(
    (gate) => gate.stop(),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ServiceStartError);
  expect(error).toMatchObject({ end: { code: 78 }, stderr: expect.stringContaining('Set ASSERTION_KEY') });
});
