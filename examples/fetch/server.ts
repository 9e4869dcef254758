import { serve } from '@hono/node-server';
import { createResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/fetch';

const { ISSUER: issuer = 'https://tenant.eu.auth0.com/', AUDIENCE: audience = 'https://api.example.com/' } =
  process.env;
const resourceServer = createResourceServer({ issuer, audience });
const protect = createProtect(resourceServer);

const messages = protect({ scopes: ['read:messages'] }, (_request, { claims }) =>
  Response.json({ reader: claims.sub }),
);

/** Any server of handlers from `Request` to `Response` will do; this one is for Node. */
function handle(request: Request): Response | Promise<Response> {
  const { pathname } = new URL(request.url);
  if (pathname === '/') return new Response('open to all');
  return pathname === '/messages' ? messages(request) : new Response(null, { status: 404 });
}

serve({ fetch: handle, port: Number(process.env['PORT'] ?? 3000) });
