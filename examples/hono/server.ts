import { type HttpBindings, serve } from '@hono/node-server';
import { Hono } from 'hono';
import { createResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/hono';

const { ISSUER: issuer = 'https://tenant.eu.auth0.com/', AUDIENCE: audience = 'https://api.example.com/' } =
  process.env;
const resourceServer = createResourceServer({ issuer, audience });
const app = new Hono<{ Bindings: HttpBindings }>();
const protect = createProtect<{ Bindings: HttpBindings }>(resourceServer, {
  // For `trustProxy` with a list of addresses: it trusts no peer that it cannot see.
  connection: (c) => c.env.incoming.socket,
});

app.get('/', (c) => c.text('open to all'));
app.get(
  '/messages',
  protect({ scopes: ['read:messages'] }, (c, { claims }) => c.json({ reader: claims.sub })),
);

serve({ fetch: app.fetch, port: Number(process.env['PORT'] ?? 3000) });
