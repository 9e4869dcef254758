import { deepEqual, equal } from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { createKeySet, createResourceServer } from 'portcullis';
import { createTestIssuer } from 'portcullis/testing';
import { createApp } from './app.js';

let issuer;
let keys;
let app;
let url;

// Everything real: the keys are fetched over TLS, the calls go over sockets.
before(async () => {
  issuer = await createTestIssuer().listen();
  keys = createKeySet({ issuer: issuer.issuer, ca: issuer.ca });
  const issuers = [{ issuer: issuer.issuer, keys }];
  app = createApp(createResourceServer({ issuers, audience: issuer.audience }));
  await once(app.listen(0, '127.0.0.1'), 'listening');
  url = `http://127.0.0.1:${app.address().port}/messages`;
});

after(async () => {
  app.close();
  keys.close();
  await issuer.close();
});

test('a token with the scope → 200', async () => {
  const response = await fetch(url, { headers: issuer.headers({ sub: 'alice', scope: 'read:messages' }) });
  equal(response.status, 200);
  deepEqual(await response.json(), { reader: 'alice' });
});

test('a token without it → 403, and the challenge names it', async () => {
  const response = await fetch(url, { headers: issuer.headers() });
  equal(response.status, 403);
  equal(/scope="([^"]*)"/.exec(response.headers.get('www-authenticate'))?.[1], 'read:messages');
});
