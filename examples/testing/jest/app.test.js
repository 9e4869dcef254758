import { expect, test } from '@jest/globals';
import { createTestIssuer } from 'portcullis/testing';
import { createApp } from './app.js';

const issuer = createTestIssuer();
const client = issuer.dpopClient();
const app = createApp({ issuers: [issuer], audience: issuer.audience });
const call = { method: 'POST', url: 'http://localhost/messages', scope: 'write:messages' };
const send = (headers) => app.request(call.url, { method: call.method, headers });

test('a bound token with its proof → 201, and the same proof again → 401', async () => {
  const headers = client.headers(call);
  expect((await send(headers)).status).toBe(201);
  expect((await send(headers)).status).toBe(401);
});

test('a stolen token, with the proof of another key → 401', async () => {
  const token = client.token({ scope: call.scope });
  const thief = issuer.dpopClient();
  const response = await send(thief.headers({ ...call, token }));
  expect(response.status).toBe(401);
  expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"');
});
