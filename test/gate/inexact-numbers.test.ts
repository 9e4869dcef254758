import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { expect, it } from 'vitest';
import { useFolder } from '../support/folder.ts';
import { lastHeaders, useUpstream } from '../support/gate-edge.ts';
import { useGate } from '../support/gate-process.ts';
import { send } from '../support/http-client.ts';
import { useTestProvider } from '../support/test-provider.ts';

const folder = useFolder();
const keyFile = join(folder, 'signing.pem');
const { privateKey } = generateKeyPairSync('ed25519');
writeFileSync(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }));
const provider = await useTestProvider();
const upstream = await useUpstream();
const rules = {
  issuers: { staff: { issuer: provider.issuer, audience: provider.audience } },
  identity: { 'X-Tenant': 'tenant', 'X-Of': ['of', 'ids'] },
  assertion: { issuer: 'https://gate.example/', audience: 'upstream', header: 'X-Signed', claims: ['tenant', 'of'] },
  rules: [
    { id: 'one', path: '/one', when: "token.tenant == '9007199254740992'" },
    { id: 'any', path: '/any' },
    {
      ...{ id: 'app', path: '/app' },
      when: "request.headers['x-app'] == 'a, b' && !('x-drop' in request.headers) && request.client_ip == '127.0.0.1'",
    },
  ],
};
const settings = { UPSTREAM: `http://${upstream.address}`, ASSERTION_KEY: keyFile, LOG_IDENTITY: 'plain' };
const gate = await useGate(provider, rules, settings);

async function call(path: string, tenant: string) {
  const edit = (json: string) => json.replace(/"#"/g, tenant);
  const token = await provider.sign({ tenant: '#', client_id: '#', of: { ids: [1, '#'] } }, { edit });
  return send(gate.url, path, { headers: ['Authorization', `Bearer ${token}`] });
}

it.each(['9007199254740993', '1e400', '1.0000000000000000001'])(
  'claim %s → the digits at the upstream',
  async (digits) => {
    expect(await call('/any', digits)).toMatchObject({ status: 200 });
    const of = [1, digits];
    expect(lastHeaders(upstream)).toMatchObject({ 'x-tenant': digits, 'x-of': JSON.stringify(of) });
    expect(decodeJwt(String(lastHeaders(upstream)['x-signed']))).toMatchObject({ tenant: digits, of: { ids: of } });
  },
);

it('claim 1E3 → as JavaScript writes it', async () => {
  expect(await call('/any', '1E3')).toMatchObject({ status: 200 });
  expect(lastHeaders(upstream)).toMatchObject({ 'x-tenant': '1000', 'x-of': '[1,1000]' });
  expect(decodeJwt(String(lastHeaders(upstream)['x-signed']))).toMatchObject({ tenant: 1000, of: { ids: [1, 1000] } });
});

it('rule for 9007199254740992 → 9007199254740993 is refused, and the log has its digits', async () => {
  expect(await call('/one', '9007199254740992')).toMatchObject({ status: 200 });
  expect(await call('/one', '9007199254740993')).toMatchObject({ status: 403 });
  const line = await gate.findLog(({ status }) => status === 403);
  expect(line).toMatchObject({
    expected: 'token.tenant == "9007199254740992"',
    received: ['token.tenant = "9007199254740993"'],
    client_id: '9007199254740993',
  });
});

it('condition on headers → the values that the upstream gets', async () => {
  const token = await provider.sign({});
  const headers = ['Authorization', `Bearer ${token}`, 'X-App', 'a', 'Connection', 'X-Drop', 'X-Drop', '1'];
  expect(await send(gate.url, '/app', { headers: [...headers, 'x-app', 'b'] })).toMatchObject({ status: 200 });
  expect(lastHeaders(upstream)).toMatchObject({ 'x-app': 'a, b' });
  expect(await send(gate.url, '/app', { headers })).toMatchObject({ status: 403 });
  const line = await gate.findLog(({ rule, status }) => rule === 'app' && status === 403);
  expect(line).toMatchObject({ reason: 'condition_not_met', received: [expect.stringMatching(/^\S+ = #/)] });
});
