import { Hono } from 'hono';
import { cors } from 'hono/cors';
import type { ResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/hono';

/** An API for the scripts of one origin. */
export function createApi(resourceServer: ResourceServer): Hono {
  const protect = createProtect(resourceServer);
  const app = new Hono();
  // Before every route: a preflight request has no token, and a refusal must have these headers too.
  app.use(
    cors({
      origin: 'https://app.example.com',
      allowMethods: ['GET', 'POST'],
      allowHeaders: ['Authorization', 'DPoP', 'Content-Type'],
      exposeHeaders: ['WWW-Authenticate', 'DPoP-Nonce'],
      maxAge: 600,
    }),
  );
  app.get(
    '/messages',
    protect({ scopes: ['read:messages'] }, (c, { claims }) => c.json({ reader: claims.sub })),
  );
  return app;
}
