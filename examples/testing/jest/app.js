import { Hono } from 'hono';
import { createResourceServer } from 'portcullis';
import { createAuthorize } from 'portcullis/hono';

/** The routes, only for clients with DPoP. */
export function createApp({ issuers, audience }) {
  const authorize = createAuthorize(createResourceServer({ issuers, audience, dpop: { mode: 'required' } }));
  const app = new Hono();
  app.post('/messages', authorize({ scopes: ['write:messages'] }), (c) =>
    c.json({ writer: c.var.access.claims.sub }, 201),
  );
  return app;
}
