import { Hono } from 'hono';
import { createResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/hono';

/** The routes, only for clients with DPoP. */
export function createApp({ issuers, audience }) {
  const protect = createProtect(createResourceServer({ issuers, audience, dpop: { mode: 'required' } }));
  const app = new Hono();
  app.post(
    '/messages',
    protect({ scopes: ['write:messages'] }, (c, { claims }) => c.json({ writer: claims.sub }, 201)),
  );
  return app;
}
