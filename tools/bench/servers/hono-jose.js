// Hono with jose, as jose's documentation joins createRemoteJWKSet and jwtVerify.
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { audience, host, issuer, jwksUri, openAnswer, port, privateAnswer } from './settings.js';

const keys = createRemoteJWKSet(new URL(jwksUri));
const options = { issuer, audience, algorithms: ['RS256'], requiredClaims: ['exp'] };
const app = new Hono();
app.get('/api/public', (c) => c.json(openAnswer()));
app.get('/api/private', async (c) => {
  const [, token] = c.req.header('authorization')?.match(/^Bearer +(\S+)$/i) ?? [];
  if (token === undefined) return c.json({ error: 'invalid_token' }, 401);
  try {
    const { payload } = await jwtVerify(token, keys, options);
    return c.json(privateAnswer(payload));
  } catch {
    return c.json({ error: 'invalid_token' }, 401);
  }
});
serve({ fetch: app.fetch, port, hostname: host });
