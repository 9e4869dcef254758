import { readFileSync } from 'node:fs';
import { decodeJwt } from 'jose';
import { expect, test } from 'vitest';
import { clientIds } from '../../src/dev/provider/defaults.ts';
import { clientAuthorization, devGrant } from '../../src/dev/tokens/dev-token.ts';
import { useLocalIdp } from '../support/local-idp.ts';

const { idp, call } = await useLocalIdp();
const secret = readFileSync(idp.clientSecretFile, 'utf8');

/** Sends an order with the credentials of the service client, or others. */
function send(form: Readonly<Record<string, string>>, authorization = clientAuthorization(secret)) {
  const headers = { 'content-type': 'application/x-www-form-urlencoded', authorization };
  const body = new URLSearchParams({ grant_type: devGrant, ...form });
  return call(`${idp.issuer}token`, { method: 'POST', headers, body });
}

async function expectInvalid(response: Awaited<ReturnType<typeof call>>): Promise<void> {
  expect([response.status, await response.json()]).toMatchObject([400, { error: 'invalid_request' }]);
}

test('order as it should be → 200 with a token, not to be stored', async () => {
  const response = await send({ order: JSON.stringify({ scope: 'notes:read', claims: { sub: 'alice' } }) });
  expect(response.status).toBe(200);
  expect(response.headers.get('cache-control')).toBe('no-store');
  const { access_token } = (await response.json()) as { readonly access_token: string }; // as the provider writes it
  expect(decodeJwt(access_token)).toMatchObject({ sub: 'alice', scope: 'notes:read' });
});

test.each([
  ['a wrong secret', () => clientAuthorization('wrong')],
  ['another scheme', () => 'Bearer x'],
])('%s → refused', async (_name, authorization) => {
  const response = await send({ order: '{}' }, authorization());
  expect(response.status).toBeGreaterThanOrEqual(400);
  expect(await response.json()).toMatchObject({ error: expect.stringMatching(/^invalid_(?:client|request)$/) });
});

test('a client that has registered itself → refused, although its grant types name this one', async () => {
  const metadata = { grant_types: [devGrant], redirect_uris: [], response_types: [] };
  const headers = { 'content-type': 'application/json' };
  const registered = await call(`${idp.issuer}reg`, { method: 'POST', headers, body: JSON.stringify(metadata) });
  expect(registered.status).toBe(201);
  const { client_id: id, client_secret: own } = (await registered.json()) as Readonly<Record<string, string>>; // RFC 7591
  expect(id).not.toBe(clientIds.service);
  const response = await send({ order: '{}' }, `Basic ${Buffer.from(`${id}:${own}`).toString('base64')}`);
  await expectInvalid(response);
});

test.each<[string, Readonly<Record<string, string>>]>([
  ['no order', {}],
  ['no JSON', { order: '{' }],
  ['null', { order: 'null' }],
  ['a string', { order: '"expired"' }],
  ['an array', { order: '[]' }],
  ['an unknown member', { order: '{"sub":"admin"}' }],
  ['a member of the prototype', { order: '{"toString":"x"}' }],
  ['an unknown validity', { order: '{"validity":"forever"}' }],
  ['an unknown kind of key', { order: '{"key":"mine"}' }],
  ['a scope that is no string', { order: '{"scope":["read:messages"]}' }],
])('%s → invalid_request', async (_name, form) => {
  const response = await send(form);
  await expectInvalid(response);
});
