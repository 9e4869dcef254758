import { Hono } from 'hono';
import { createResourceServer, type ResourceServerOptions } from 'portcullis';
import { createAuthorize } from 'portcullis/hono';

/** The routes. Who may call them is said from outside: by your provider in production, by a test issuer in tests. */
export function createApp(options: ResourceServerOptions) {
  const authorize = createAuthorize(createResourceServer(options));
  const app = new Hono();
  app.get('/messages', authorize({ scopes: ['read:messages'] }), (c) => c.json({ reader: c.var.access.claims.sub }));
  return app;
}
