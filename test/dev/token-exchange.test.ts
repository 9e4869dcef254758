import { readFileSync } from 'node:fs';
import { decodeJwt } from 'jose';
import { expect, it } from 'vitest';
import { isAccess } from '../../src/core/resource-server/access.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { clientAuthorization } from '../../src/dev/tokens/dev-token.ts';
import type { TokenOptions } from '../../src/dev/tokens/token-options.ts';
import { idpOptions, useLocalIdp } from '../support/local-idp.ts';

const { audience } = idpOptions;
const jwt = 'urn:ietf:params:oauth:token-type:jwt';
const { idp, call } = await useLocalIdp();

type Form = Readonly<Record<string, string>>;
const ofService = clientAuthorization(readFileSync(idp.clientSecretFile, 'utf8'));
async function exchange(form: Form, authorization: string | null = ofService) {
  const response = await call(`${idp.issuer}token`, {
    method: 'POST',
    headers: { ...(authorization && { authorization }), 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', ...form }),
  });
  return { status: response.status, json: (await response.json()) as { access_token: string; error?: string } };
}
const subjectOf = async (options: TokenOptions): Promise<Form> => ({
  subject_token: await idp.token(options),
  subject_token_type: jwt,
});
const alice = { claims: { sub: 'alice' }, scope: 'read:messages write:messages' };

it('a subject token → a token of the subject with the client as actor, which a resource server admits', async () => {
  const { status, json } = await exchange(await subjectOf(alice));
  expect(status).toBe(200);
  expect(json).toEqual({
    access_token: expect.any(String),
    issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    ...{ token_type: 'Bearer', expires_in: 3600, scope: 'read:messages write:messages' },
  });
  expect(decodeJwt(json.access_token)).toMatchObject({ sub: 'alice', act: { sub: 'portcullis-service' } });
  const jwks = await (await call(`${idp.issuer}.well-known/jwks.json`)).json();
  const server = createResourceServer({ issuers: [{ issuer: idp.issuer, keys: jwks as never }], audience });
  const headers = { authorization: `Bearer ${json.access_token}` };
  const access = await server.judge(new Request(audience, { headers }), { actor: [{ sub: 'portcullis-service' }] });
  expect(isAccess(access) && access.actor).toEqual({ sub: 'portcullis-service' });
});

it('an actor token, a subject token with an actor, fewer scopes → the actors are nested, the scopes reduced', async () => {
  const actor_token = await idp.token({ claims: { sub: 'agent-2' } });
  const subject = await subjectOf({ ...alice, claims: { sub: 'alice', act: { sub: 'agent-1' } } });
  const { json } = await exchange({ ...subject, actor_token, actor_token_type: jwt, scope: 'read:messages' });
  expect(decodeJwt(json.access_token)).toMatchObject({
    sub: 'alice',
    scope: 'read:messages',
    act: { sub: 'agent-2', act: { sub: 'agent-1' } },
  });
});

it('another audience, and a resource → aud of the new token', async () => {
  const audOf = async (form: Form) => {
    const { json } = await exchange({ ...(await subjectOf(alice)), ...form });
    return decodeJwt(json.access_token).aud;
  };
  expect(await audOf({ audience: 'https://orders.example/' })).toBe('https://orders.example/');
  expect(await audOf({ audience: 'orders', resource: 'https://a.example/' })).toEqual(['orders', 'https://a.example/']);
});

it.each<readonly [string, () => Promise<Form>, string]>([
  ['no subject token', async () => ({ subject_token_type: jwt }), 'invalid_request'],
  ['another type of token', async () => ({ ...(await subjectOf(alice)), subject_token_type: 'x' }), 'invalid_request'],
  ['an expired token', () => subjectOf({ ...alice, validity: 'expired' }), 'invalid_request'],
  ['a token with an unknown key', () => subjectOf({ ...alice, key: 'unknown' }), 'invalid_request'],
  ['a bound token', () => subjectOf({ ...alice, jkt: 'x'.repeat(43) }), 'invalid_request'],
  ['more scopes', async () => ({ ...(await subjectOf({})), scope: 'read:messages' }), 'invalid_scope'],
  [
    'a refused audience',
    async () => ({ ...(await subjectOf(alice)), audience: 'https://x.invalid' }),
    'invalid_target',
  ],
  [
    'an actor token that is not valid',
    async () => ({ ...(await subjectOf(alice)), actor_token: 'x', actor_token_type: jwt }),
    'invalid_request',
  ],
])('%s → 400', async (_input, form, error) => {
  const { status, json } = await exchange(await form());
  expect([status, json.error]).toEqual([400, error]);
});

it('a client without the grant → refused', async () => {
  expect((await exchange({ ...(await subjectOf(alice)), client_id: 'portcullis-app' }, null)).status).toBe(400);
  expect((await exchange(await subjectOf(alice), clientAuthorization('wrong'))).status).toBe(401);
});
