import { readFileSync } from 'node:fs';
import { calculateJwkThumbprint, decodeJwt, exportJWK } from 'jose';
import * as client from 'openid-client';
import { afterEach, expect, test } from 'vitest';
import { clientIds } from '../../src/dev/provider/defaults.ts';
import { type LocalIdp, startLocalIdp } from '../../src/dev/provider/local-idp.ts';
import { type Call, createCall } from '../support/call-over-tls.ts';
import { useFolder } from '../support/folder.ts';
import { idpOptions } from '../support/local-idp.ts';
import { words } from '../support/words.ts';

const cacheFolder = useFolder();
let idp: LocalIdp;
let call: Call;

async function start(audience: string): Promise<client.Configuration> {
  idp = await startLocalIdp({ ...idpOptions, audience, cacheFolder });
  call = createCall(readFileSync(idp.certificateFile, 'utf8'));
  const secret = readFileSync(idp.clientSecretFile, 'utf8');
  return client.discovery(new URL(idp.issuer), clientIds.service, secret, client.ClientSecretBasic(secret), {
    [client.customFetch]: (url, { method, headers, body }) => call(url, { method, headers, body }),
  });
}

afterEach(() => idp.close());

test.each([
  ...words('https://api.example/ https://api.example urn:api api.example/v1 https://api.example/#a'),
  ...['my api'],
])('audience %s → in aud byte for byte, though no resource is named', async (audience) => {
  const config = await start(audience);
  expect(decodeJwt((await client.clientCredentialsGrant(config)).access_token).aud).toBe(audience);
});

test('resource indicators (RFC 8707): the audience → a token for it; another → invalid_target', async () => {
  const audience = 'https://api.example/';
  const config = await start(audience);
  const tokens = await client.clientCredentialsGrant(config, { resource: audience });
  expect(decodeJwt(tokens.access_token).aud).toBe(audience);
  await expect(client.clientCredentialsGrant(config, { resource: 'https://other.example/' })).rejects.toMatchObject({
    error: 'invalid_target',
  });
});

test('client credentials with a DPoP proof → token bound to its key, with each requested scope of an API', async () => {
  const config = await start('https://api.example/');
  const keyPair = await client.randomDPoPKeyPair('ES256');
  const DPoP = client.getDPoPHandle(config, keyPair);
  const tokens = await client.clientCredentialsGrant(config, { scope: 'read:messages openid notes:read' }, { DPoP });
  expect(tokens.token_type.toLowerCase()).toBe('dpop');
  const jkt = await calculateJwkThumbprint(await exportJWK(keyPair.publicKey));
  expect(decodeJwt(tokens.access_token)).toMatchObject({ cnf: { jkt }, scope: 'read:messages notes:read' });
});

test.each([
  ['http://localhost:3000', 'http://localhost:3000'],
  ['http://127.0.0.1:5173', 'http://127.0.0.1:5173'],
  ['https://attacker.example', null],
  ['http://localhost.attacker.example', null],
])('token request of a page on %s → Access-Control-Allow-Origin %s', async (origin, allowed) => {
  await start('https://api.example/');
  const response = await call(`${idp.issuer}token`, {
    method: 'POST',
    headers: { origin, 'content-type': 'application/x-www-form-urlencoded' },
    body: `grant_type=authorization_code&client_id=${clientIds.app}&code=none&redirect_uri=http://localhost/`,
  });
  expect(response.headers.get('access-control-allow-origin')).toBe(allowed);
  expect(response.status).toBe(400);
});
