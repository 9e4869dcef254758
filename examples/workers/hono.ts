import { Hono } from 'hono';
import { createResourceServer } from 'portcullis';
import { createAuthorize } from 'portcullis/hono';

interface Env {
  readonly ISSUER: string;
  readonly AUDIENCE: string;
}

function createApp({ ISSUER: issuer, AUDIENCE: audience }: Env) {
  // The platform's own fetch; it must not be called as a method of another object.
  const resourceServer = createResourceServer({ issuer, audience, fetch: (url, init) => fetch(url, init) });
  const authorize = createAuthorize(resourceServer);
  return new Hono()
    .get('/', (c) => c.text('open to all'))
    .get('/messages', authorize({ scopes: ['read:messages'] }), (c) => c.json({ reader: c.var.access.claims.sub }));
}

/** Created with the first request, which brings the settings; kept afterwards, with its keys. */
let app: ReturnType<typeof createApp> | undefined;

export default {
  fetch(request: Request, env: Env): Response | Promise<Response> {
    app ??= createApp(env);
    return app.fetch(request, env);
  },
};
