import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAssertionVerifier } from '../../src/core/assertion/assertion-verifier.ts';
import { type OpenedGate, openGate } from '../support/gate-process.ts';
import { exchange, readStatuses, send } from '../support/http-client.ts';
import { sendLogout } from '../support/logout.ts';
import { awaitReady } from '../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';

const issuer = 'https://gate.example/';
const audience = 'https://orders.internal/';
const keysPath = '/.well-known/portcullis/jwks.json';
const folder = mkdtempSync(join(tmpdir(), 'portcullis-assertion-wire-'));
const keyFile = join(folder, 'signing.pem');
let provider: TestProvider;
let gate: OpenedGate;
let upstream: Server;
/** Bytes that reached the upstream since the last call. */
let arrived = '';

beforeAll(async () => {
  const { privateKey } = generateKeyPairSync('ed25519');
  writeFileSync(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  provider = await startTestProvider();
  upstream = createServer((socket: Socket) => {
    socket.setEncoding('latin1').on('error', () => undefined);
    let pending = '';
    socket.on('data', (bytes: string) => {
      arrived += bytes;
      pending += bytes;
      const isChunked = /transfer-encoding: chunked/i.test(pending);
      if (!(isChunked ? /\r\n0\r\n(?:[\s\S]*\r\n)?\r\n$/ : /\r\n\r\n/).test(pending)) return;
      const isUpgrade = /^upgrade:/im.test(pending);
      pending = '';
      socket.write(
        isUpgrade
          ? 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n'
          : 'HTTP/1.1 204 No Content\r\n\r\n',
      );
      if (isUpgrade) socket.end();
    });
  });
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  const rules = {
    issuers: { staff: { issuer: provider.issuer, audience: provider.audience } },
    assertion: { issuer, audience, header: 'X-Auth-Assertion', claims: ['email'] },
    rules: [
      { id: 'open', path: '/open', access: 'open' },
      { id: 'deny', path: '/.well-known/**', access: 'deny' },
      { id: 'orders', path: '/orders/**' },
    ],
  };
  gate = await openGate(provider, rules, {
    ...{ ASSERTION_KEY: keyFile, LOGOUT_CLIENTS: 'app', TRUST_PROXY: '192.0.2.1' },
    UPSTREAM: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
  });
  await awaitReady(gate);
});
afterAll(async () => {
  await gate?.stop();
  upstream?.close();
  await provider?.close();
  rmSync(folder, { recursive: true });
});

const last = 'Connection: close\r\n';
const bearer = (token: string): string => `Authorization: Bearer ${token}\r\n`;
async function forward(head: string, body = ''): Promise<readonly number[]> {
  arrived = '';
  return readStatuses(await exchange(gate.port, `${head}\r\n${body}`));
}
const assertions = (): readonly string[] =>
  [...arrived.matchAll(/^x-auth-assertion: *(.*)\r$/gim)].map(([, value]) => value ?? '');
const verify = async (assertion: string | undefined) => {
  const jwks = JSON.parse((await send(gate.url, keysPath)).body);
  return createAssertionVerifier({ issuer, audience, jwks }).verify(String(assertion));
};

describe('a client that forges or strips the assertion', () => {
  const get = (path: string, more: string) => `GET ${path} HTTP/1.1\r\nHost: api.example\r\n${more}`;

  it.each([
    ['as hop-by-hop', 'Connection: close, X-Auth-Assertion, X-Auth-Subject\r\n'],
    ['as hop-by-hop, in another header', 'Connection: close\r\nConnection: x-auth-assertion\r\n'],
    ['as proxy-connection', `${last}Proxy-Connection: X-Auth-Assertion\r\n`],
  ])('%s → the upstream has exactly one, of the gate', async (_title, more) => {
    const token = await provider.sign({ sub: 'ann' });
    expect(await forward(get('/orders/1', bearer(token) + more))).toEqual([204]);
    const [assertion, ...others] = assertions();
    expect(others).toEqual([]);
    expect(await verify(assertion)).toMatchObject({ sub: 'ann', rule: 'orders' });
    expect(arrived).toMatch(/^x-auth-subject: ann\r$/im);
  });

  it.each([..."!#$%&'*+.^_`|~", '-'])('the name with %s, twice, at an open rule → removed', async (each) => {
    const name = ['X', 'Auth', 'Assertion'].join(each);
    const forged = `${name}: forged\r\n${name.toUpperCase()}: forged\r\n`;
    expect(await forward(get('/open', forged + last))).toEqual([204]);
    expect(arrived).not.toContain('forged');
  });

  it('in a trailer → does not reach the upstream', async () => {
    const token = await provider.sign();
    const head = `POST /orders/1 HTTP/1.1\r\nHost: api.example\r\n${bearer(token)}Transfer-Encoding: chunked\r\nTrailer: X-Auth-Assertion\r\n${last}`;
    const [status] = await forward(head, '2\r\nhi\r\n0\r\nX-Auth-Assertion: forged\r\nX-Auth-Subject: forged\r\n\r\n');
    expect([204, 400]).toContain(status);
    expect(arrived).not.toContain('forged');
  });

  it('folded over two lines → 400, or removed', async () => {
    const [status] = await forward(get('/open', `X-Auth-Assertion: a\r\n forged\r\n${last}`));
    expect([204, 400]).toContain(status);
    expect(arrived).not.toContain('forged');
  });

  it('with a handshake of WebSocket → the assertion of the gate alone', async () => {
    const token = await provider.sign({ sub: 'ann' });
    const handshake =
      'Connection: Upgrade, X-Auth-Assertion\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
    expect(await forward(get('/orders/socket', `${bearer(token)}X-Auth-Assertion: forged\r\n${handshake}`))).toEqual([
      101,
    ]);
    expect(arrived).not.toContain('forged');
    expect(await verify(assertions()[0])).toMatchObject({ sub: 'ann' });
  });
});

describe('a cached assertion', () => {
  it('a session that ended while its assertion was cached → 401, and the upstream gets nothing', async () => {
    const token = await provider.sign({ sid: 's1', sub: 'ann' });
    const request = `GET /orders/1 HTTP/1.1\r\nHost: api.example\r\n${bearer(token)}${last}`;
    for (let i = 0; i < 8; i++) expect(await forward(request)).toEqual([204]);
    expect(await sendLogout(provider, gate, 's1')).toBe(200);
    await expect.poll(() => forward(request)).toEqual([401]);
    for (let i = 0; i < 8; i++) {
      expect(await forward(request)).toEqual([401]);
      expect(arrived).toBe('');
    }
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
    const sent = Array.from({ length: 8 }, () => send(gate.url, `${keysPath}?v=1`, { headers }));
    const bodies = new Set((await Promise.all(sent)).map(({ status, body }) => `${status} ${body}`));
    expect([...bodies]).toEqual([expect.stringMatching(/^200 \{"keys":\[\{/)]);
  });

  it('rules without assertion → the rules decide', async () => {
    const rules = {
      issuers: { staff: { issuer: provider.issuer, audience: provider.audience } },
      rules: [{ id: 'all', path: '/**' }],
    };
    const plain = await openGate(provider, rules, { UPSTREAM: 'http://127.0.0.1:9' });
    expect((await send(plain.url, keysPath)).status).toBe(401);
    await plain.stop();
  });
});
