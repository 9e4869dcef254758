import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { useFolder } from '../support/folder.ts';
import { startRecordingUpstream } from '../support/gate-edge.ts';
import { openGate, tell } from '../support/gate-process.ts';
import { send } from '../support/http-client.ts';
import { sendLogout } from '../support/logout.ts';
import type { OpenedService } from '../support/open-service.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { sendRawFor } from './proxied.ts';

const provider = await useTestProvider();
const folder = useFolder();
const open = async (...parameters: Parameters<typeof openGate>) => {
  const gate = await openGate(...parameters);
  onTestFinished(async () => void (await gate.stop()));
  return gate;
};

const token = (sid: string, claims: object = {}) => provider.sign({ sid, sub: 'ann', ...claims });

const endSession = (service: OpenedService, sid: string) => sendLogout(provider, service, sid);

async function startUpstream() {
  const upstream = await startRecordingUpstream();
  onTestFinished(() => upstream.close());
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
    const gate = await open(provider, rules(), { LOGOUT_CLIENTS: 'app', UPSTREAM: url });
    const handshake = async (value: string): Promise<string> => {
      const lines = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'];
      const all = [...lines, 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', `Authorization: Bearer ${value}`, '', ''];
      const bytes = ['GET /chat HTTP/1.1', 'Host: api.example', ...all].join('\r\n');
      return (await sendRawFor(gate.port, bytes, (seen) => seen.includes('\r\n\r\n'))).slice(9, 12);
    };
    const [ended, other] = [await token('s1'), await token('s2')];
    expect([await handshake(ended), await handshake(other)]).toEqual(['101', '101']);
    expect(await endSession(gate, 's1')).toBe(200);
    expect([await handshake(ended), await handshake(other)]).toEqual(['401', '101']);
    expect(received).toHaveLength(3);
  });

  it('the endpoint: any host, before the rules and before the upstream; 405 for GET, whatever ERROR_BODY is', async () => {
    const { url, received } = await startUpstream();
    const settings = { LOGOUT_CLIENTS: 'app', UPSTREAM: url, ERROR_BODY: 'problem' };
    const gate = await open(provider, rules({ access: 'deny' }), settings);
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
    const gate = await open(provider, rules(), { LOGOUT_CLIENTS: 'app', TRUST_PROXY: '192.0.2.1' });
    expect(await endSession(gate, 's1')).toBe(200);
  });

  it('POST /revocations and the metrics of keys: the issuers of the rules that are active', async () => {
    const keyFile = join(folder, 'key');
    await writeFile(keyFile, 'k'.repeat(32));
    const gate = await open(provider, rules(), { ADMIN_KEY_FILE: keyFile, TRUST_PROXY: '127.0.0.1' });
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

  it.each(['forward-auth', 'ext-authz/notes'])('%s: a session that has ended → 401', async (path) => {
    const gate = await open(provider, rules(), { LOGOUT_CLIENTS: 'app', TRUST_PROXY: '127.0.0.1' });
    const ask = async (value: string) =>
      (await send(gate.url, `/${path}`, { headers: bearer(value, ...tell({ path: '/notes' })) })).status;
    const [ended, other] = [await token('s1'), await token('s2')];
    expect([await ask(ended), await ask(other)]).toEqual([200, 200]);
    expect(await endSession(gate, 's1')).toBe(200);
    expect([await ask(ended), await ask(other)]).toEqual([401, 200]);
  });
});
