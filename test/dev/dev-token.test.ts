import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalIdp, startLocalIdp } from '../../src/dev/provider/local-idp.ts';
import { clientAuthorization } from '../../src/dev/tokens/dev-token.ts';
import { takeSigningKey } from '../support/rsa-keys.ts';
import { type Call, createCall } from './call.ts';

let cacheFolder: string;
let idp: LocalIdp;
let certificate: string;
let secret: string;
let call: Call;

beforeAll(async () => {
  cacheFolder = await mkdtemp(join(tmpdir(), 'portcullis-'));
  idp = await startLocalIdp({
    makeKey: takeSigningKey,
    port: 0,
    audience: 'https://api.example/',
    customClaim: 'claim',
    cacheFolder,
  });
  certificate = readFileSync(idp.certificateFile, 'utf8');
  secret = readFileSync(idp.clientSecretFile, 'utf8');
  call = createCall(certificate);
});
afterAll(async () => {
  await idp.close();
  await rm(cacheFolder, { recursive: true });
});

interface Sent {
  readonly method?: string;
  readonly contentType?: string;
  readonly authorization?: string | undefined;
  readonly body?: string;
}

function order({ method = 'POST', contentType = 'application/json', authorization, body = '{}' }: Sent = {}) {
  const headers = { 'content-type': contentType, authorization: authorization ?? clientAuthorization(secret) };
  return call(`${idp.issuer}dev/token`, { method, headers, body });
}

test.each([{}, { contentType: 'application/json; charset=utf-8' }, { contentType: 'Application/JSON' }])(
  'order as it should be (%j) → 200 with a token, not to be stored',
  async (sent) => {
    const response = await order(sent);
    expect(response.status).toBe(200);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.json()).toEqual({ access_token: expect.stringMatching(/^ey[\w-]+\.[\w-]+\.[\w-]+$/) });
  },
);

test.each<[string, Sent, number, string]>([
  ['GET', { method: 'GET', body: '' }, 405, 'invalid_request'],
  [
    'a form, as a foreign page could send it',
    { contentType: 'application/x-www-form-urlencoded' },
    415,
    'invalid_request',
  ],
  ['plain text, as a foreign page could send it', { contentType: 'text/plain' }, 415, 'invalid_request'],
  ['another type that begins alike', { contentType: 'application/jsonp' }, 415, 'invalid_request'],
  ['no content type', { contentType: '' }, 415, 'invalid_request'],
  ['no credentials', { authorization: '' }, 401, 'invalid_client'],
  ['a wrong secret', { authorization: clientAuthorization('wrong') }, 401, 'invalid_client'],
  ['another scheme', { authorization: 'Bearer x' }, 401, 'invalid_client'],
  ['4097 bytes', { body: JSON.stringify({ scope: 'a'.repeat(4085) }) }, 413, 'invalid_request'],
  ['a mebibyte', { body: JSON.stringify({ scope: 'a'.repeat(1_048_576) }) }, 413, 'invalid_request'],
  ['no JSON', { body: '{' }, 400, 'invalid_request'],
  ['null', { body: 'null' }, 400, 'invalid_request'],
  ['a string', { body: '"expired"' }, 400, 'invalid_request'],
  ['an array', { body: '[]' }, 400, 'invalid_request'],
  ['an unknown member', { body: '{"sub":"admin"}' }, 400, 'invalid_request'],
  ['a member of the prototype', { body: '{"toString":"x"}' }, 400, 'invalid_request'],
  ['an unknown validity', { body: '{"validity":"forever"}' }, 400, 'invalid_request'],
  ['an unknown kind of key', { body: '{"key":"mine"}' }, 400, 'invalid_request'],
  ['a scope that is no string', { body: '{"scope":["read:messages"]}' }, 400, 'invalid_request'],
])('%s → refused', async (_name, sent, status, error) => {
  const response = await order(sent);
  expect(response.status).toBe(status);
  expect(await response.json()).toEqual({ error });
});

test('wrong method → Allow; wrong credentials → challenge', async () => {
  expect((await order({ method: 'PUT' })).headers.get('allow')).toBe('POST');
  expect((await order({ authorization: 'Basic x' })).headers.get('www-authenticate')).toMatch(/^Basic realm=/);
});

test('no Authorization and no Content-Type header at all → 415, then 401', async () => {
  const url = `${idp.issuer}dev/token`;
  expect((await call(url, { method: 'POST' })).status).toBe(415);
  const headers = { 'content-type': 'application/json' };
  expect((await call(url, { method: 'POST', headers })).status).toBe(401);
});

test('4096 bytes → still read', async () => {
  const body = JSON.stringify({ scope: 'a'.repeat(4084) });
  expect(Buffer.byteLength(body)).toBe(4096);
  expect((await order({ body })).status).toBe(200);
});

test('a query → the same endpoint', async () => {
  expect((await call(`${idp.issuer}dev/token?x=1`)).status).toBe(405);
  expect((await call(`${idp.issuer}dev/tokens`)).status).toBe(404);
});

test('a request that is broken off → the provider goes on', async () => {
  const socket = connect({
    port: Number(new URL(idp.issuer).port),
    host: '127.0.0.1',
    ca: certificate,
    servername: 'localhost',
  });
  await new Promise((resolve) => socket.once('secureConnect', resolve));
  const head = ['POST /dev/token HTTP/1.1', 'Host: localhost', 'Content-Type: application/json'];
  const fields = [`Authorization: ${clientAuthorization(secret)}`, 'Expect: 100-continue', 'Content-Length: 100'];
  socket.write(`${[...head, ...fields].join('\r\n')}\r\n\r\n{"sco`);
  // 100 Continue: the request is being handled.
  await new Promise((resolve) => socket.once('data', resolve));
  socket.destroy();
  await new Promise((resolve) => socket.once('close', resolve));
  expect((await order()).status).toBe(200);
});
