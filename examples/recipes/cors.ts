import { Hono } from 'hono';
import { cors } from 'hono/cors';
import type { ResourceServer } from 'portcullis';
import { createAuthorize } from 'portcullis/hono';

/** An API for the scripts of one origin. */
export function createApi(resourceServer: ResourceServer): Hono {
  const authorize = createAuthorize(resourceServer);
  const app = new Hono();
  // Before every route: a preflight request has no token, and a refusal must have these headers too.
  app.use(
    cors({
      origin: 'https://app.example.com',
      allowMethods: ['GET', 'POST'],
      allowHeaders: ['Authorization', 'DPoP', 'Content-Type'],
      exposeHeaders: ['WWW-Authenticate', 'DPoP-Nonce', 'Retry-After'],
      maxAge: 600,
    }),
  );
  app.get('/messages', authorize({ scopes: ['read:messages'] }), (c) => c.json({ reader: c.var.access.claims.sub }));
  return app;
}
