import { createTestIssuer, tokenFlaws } from 'portcullis/testing';
import { expect, test } from 'vitest';
import { createApp } from './app.ts';

const issuer = createTestIssuer();
const app = createApp({ issuers: [issuer], audience: issuer.audience });

test('a token with the scope → 200', async () => {
  const headers = issuer.headers({ sub: 'alice', scope: 'read:messages' });
  const response = await app.request('/messages', { headers });
  expect(response.status).toBe(200);
  expect(await response.json()).toEqual({ reader: 'alice' });
});

test('a token with any flaw → 401', async () => {
  for (const flaw of tokenFlaws) {
    const authorization = `Bearer ${issuer.flawed(flaw, { scope: 'read:messages' })}`;
    const response = await app.request('/messages', { headers: { authorization } });
    expect(response.status, flaw).toBe(401);
  }
});
