// Hono with its own jwk middleware.
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { jwk } from 'hono/jwk';
import { audience, host, issuer, jwksUri, openAnswer, port, privateAnswer } from './settings.js';

const app = new Hono();
/** The middleware looks at `exp` where it is there; what else must be checked goes behind it, says its documentation. */
const requireExpiry = (c, next) =>
  c.get('jwtPayload').exp === undefined ? c.json({ error: 'invalid_token' }, 401) : next();
app.get('/api/public', (c) => c.json(openAnswer()));
app.get(
  '/api/private',
  jwk({ jwks_uri: jwksUri, alg: ['RS256'], verification: { iss: issuer, aud: audience } }),
  requireExpiry,
  (c) => c.json(privateAnswer(c.get('jwtPayload'))),
);
serve({ fetch: app.fetch, port, hostname: host });
