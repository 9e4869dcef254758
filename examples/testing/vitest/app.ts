import { Hono } from 'hono';
import { createResourceServer, type ResourceServerOptions } from 'portcullis';
import { createProtect } from 'portcullis/hono';

/** The routes. Who may call them is said from outside: by your provider in production, by a test issuer in tests. */
export function createApp(options: ResourceServerOptions) {
  const protect = createProtect(createResourceServer(options));
  const app = new Hono();
  app.get(
    '/messages',
    protect({ scopes: ['read:messages'] }, (c, { claims }) => c.json({ reader: claims.sub })),
  );
  return app;
}
