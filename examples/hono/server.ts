import { type HttpBindings, serve } from '@hono/node-server';
import { Hono } from 'hono';
import { createResourceServer } from 'portcullis';
import { createAuthorize } from 'portcullis/hono';

const { ISSUER: issuer = 'https://tenant.eu.auth0.com/', AUDIENCE: audience = 'https://api.example.com/' } =
  process.env;
const resourceServer = createResourceServer({ issuer, audience });
const app = new Hono<{ Bindings: HttpBindings }>();
const authorize = createAuthorize<{ Bindings: HttpBindings }>(resourceServer, {
  // For `trustProxy` with a list of addresses: it trusts no peer that it cannot see.
  connection: (c) => c.env.incoming.socket,
});

app.get('/', (c) => c.text('open to all'));
app.get('/messages', authorize({ scopes: ['read:messages'] }), (c) => c.json({ reader: c.var.access.claims.sub }));

serve({ fetch: app.fetch, port: Number(process.env['PORT'] ?? 3000) });
