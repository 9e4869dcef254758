import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { useFolder } from '../support/folder.ts';
import { startRecordingUpstream } from '../support/gate-edge.ts';
import { openGate } from '../support/gate-process.ts';
import { send } from '../support/http-client.ts';
import { sendLogout } from '../support/logout.ts';
import { type OpenedService, openService } from '../support/open-service.ts';
import { useTestProvider } from '../support/test-provider.ts';

const provider = await useTestProvider();
const folder = useFolder();
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const token = (sid: string, claims: object = {}) => provider.sign({ sid, sub: 'ann', ...claims });

const endSession = (service: OpenedService, sid: string) => sendLogout(provider, service, sid);

/** An upstream that knows `If-None-Match`. */
async function startUpstream() {
  const upstream = await startRecordingUpstream();
  closers.push(upstream.close);
  upstream.answer = (incoming, outgoing) => {
    const isKnown = incoming.headers['if-none-match'] === '"1"';
    outgoing.writeHead(isKnown ? 304 : 200, { etag: '"1"', 'cache-control': 'max-age=60' }).end();
  };
  return { url: `http://${upstream.address}`, received: upstream.received };
}

const rules = (more: object = {}) => ({
  issuers: { idp: { issuer: provider.issuer, audience: provider.audience } },
  rules: [{ id: 'all', path: '/**', ...more }],
});
const bearer = (value: string, ...more: readonly string[]) => ['Authorization', `Bearer ${value}`, ...more];

describe('the gate as the proxy', () => {
  it('a handshake of WebSocket: 101 before the logout, 401 after it, and nothing reaches the upstream', async () => {
    const { url, received } = await startUpstream();
    const gate = await openGate(provider, rules(), { LOGOUT_CLIENTS: 'app', UPSTREAM: url });
    closers.push(() => gate.stop());
    const handshake = async (value: string): Promise<string> => {
      const socket = connect(Number(new URL(gate.url).port), '127.0.0.1').setEncoding('latin1');
      closers.push(() => socket.destroy());
      socket.write(
        `GET /chat HTTP/1.1\r\nHost: api.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
          `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer ${value}\r\n\r\n`,
      );
      const [head] = (await once(socket, 'data')) as [string];
      return head.slice(9, 12);
    };
    const [ended, other] = [await token('s1'), await token('s2')];
    expect([await handshake(ended), await handshake(other)]).toEqual(['101', '101']);
    expect(await endSession(gate, 's1')).toBe(200);
    expect([await handshake(ended), await handshake(other)]).toEqual(['401', '101']);
    expect(received).toHaveLength(3);
  });

  it('a response that the client has cached: 304 before the logout, 401 after it', async () => {
    const { url, received } = await startUpstream();
    const gate = await openGate(provider, rules(), { LOGOUT_CLIENTS: 'app', UPSTREAM: url });
    closers.push(() => gate.stop());
    const headers = bearer(await token('s1'), 'If-None-Match', '"1"');
    expect((await send(gate.url, '/notes', { headers })).status).toBe(304);
    expect(await endSession(gate, 's1')).toBe(200);
    expect((await send(gate.url, '/notes', { headers })).status).toBe(401);
    expect(received).toHaveLength(1);
  });

  it('gate --mcp: a tool call, the stream of events and the end of its session → 401 after the logout', async () => {
    const { url, received } = await startUpstream();
    const resource = 'http://localhost:9/mcp';
    const gate = await openService({
      command: 'gate',
      args: ['--mcp', '--issuer', provider.issuer, '--audience', resource, '--upstream', url],
      environment: { NODE_EXTRA_CA_CERTS: provider.caFile, LOGOUT_CLIENTS: 'app' },
    });
    closers.push(() => gate.stop());
    const headers = bearer(await token('s1', { aud: resource }), 'Content-Type', 'application/json');
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list' } });
    const statuses = async () => [
      (await send(gate.url, '/mcp', { method: 'POST', headers, body })).status,
      (await send(gate.url, '/mcp', { headers })).status,
      (await send(gate.url, '/mcp', { method: 'DELETE', headers })).status,
    ];
    expect(await statuses()).toEqual([200, 200, 200]);
    expect(await endSession(gate, 's1')).toBe(200);
    expect(await statuses()).toEqual([401, 401, 401]);
    expect(received).toHaveLength(3);
  });

  it('the endpoint: any host, before the rules and before the upstream; 405 for GET, whatever ERROR_BODY is', async () => {
    const { url, received } = await startUpstream();
    const settings = { LOGOUT_CLIENTS: 'app', UPSTREAM: url, ERROR_BODY: 'problem' };
    const gate = await openGate(provider, rules({ access: 'deny' }), settings);
    closers.push(() => gate.stop());
    const sent = {
      method: 'POST',
      headers: ['Host', 'other.example', 'Content-Type', 'application/x-www-form-urlencoded'],
    };
    const refused = await send(gate.url, '/backchannel-logout', { ...sent, body: 'logout_token=x' });
    expect([refused.status, refused.json]).toEqual([
      400,
      { error: 'invalid_request', error_description: 'The logout token is not valid.' },
    ]);
    const asked = await send(gate.url, '/backchannel-logout');
    expect([asked.status, asked.headers.get('allow'), asked.body]).toEqual([405, 'POST', '']);
    expect((await send(gate.url, '/backchannel-logout/', { method: 'POST' })).status).toBe(403);
    expect(received).toHaveLength(0);
  });
});

describe('the gate beside a proxy', () => {
  it('a logout token of a peer that is not a trusted proxy → 200', async () => {
    const gate = await openGate(provider, rules(), { LOGOUT_CLIENTS: 'app', TRUST_PROXY: '192.0.2.1' });
    closers.push(() => gate.stop());
    expect(await endSession(gate, 's1')).toBe(200);
  });

  it('POST /revocations and the metrics of keys: the issuers of the rules that are active', async () => {
    const keyFile = join(folder, 'key');
    await writeFile(keyFile, 'k'.repeat(32));
    const gate = await openGate(provider, rules(), { ADMIN_KEY_FILE: keyFile, TRUST_PROXY: '127.0.0.1' });
    closers.push(() => gate.stop());
    const issuer = 'https://other.example/';
    const revoke = async () => {
      const headers = bearer('k'.repeat(32), 'Content-Type', 'application/json');
      const body = JSON.stringify({ sub: 'ann', issuer });
      const { status } = await send(gate.adminUrl ?? '', '/revocations', { method: 'POST', headers, body });
      return [status, (await gate.metrics()).includes(`portcullis_key_set_usable{issuer="${issuer}"}`)];
    };
    const [rule] = rules({ issuers: ['idp'] }).rules;
    const both = { ...rules().issuers, other: { issuer, audience: 'a', jwksUri: `${provider.issuer}jwks` } };
    expect(await revoke()).toEqual([400, false]);
    await gate.writeRules({ issuers: both, rules: [rule] });
    await expect.poll(revoke, { timeout: 20_000 }).toEqual([204, true]);
    await gate.writeRules(rules());
    await expect.poll(revoke, { timeout: 20_000 }).toEqual([400, false]);
  });

  it.each([['forward-auth'], ['ext-authz']])('%s: a session that has ended → 401', async (form) => {
    const gate = await openGate(provider, rules(), { LOGOUT_CLIENTS: 'app', TRUST_PROXY: '127.0.0.1' });
    closers.push(() => gate.stop());
    const forwarded = [
      ...['X-Forwarded-Method', 'GET', 'X-Forwarded-Proto', 'https', 'X-Forwarded-Host', 'api.example'],
      ...['X-Forwarded-Uri', '/notes'],
    ];
    const ask = async (value: string) =>
      form === 'forward-auth'
        ? (await send(gate.url, '/forward-auth', { headers: bearer(value, ...forwarded) })).status
        : (await send(gate.url, '/ext-authz/notes', { headers: bearer(value, 'X-Forwarded-Proto', 'https') })).status;
    const [ended, other] = [await token('s1'), await token('s2')];
    expect([await ask(ended), await ask(other)]).toEqual([200, 200]);
    expect(await endSession(gate, 's1')).toBe(200);
    expect([await ask(ended), await ask(other)]).toEqual([401, 200]);
  });
});
