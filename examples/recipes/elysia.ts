import { Elysia } from 'elysia';
import type { ResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/fetch';

/** An application with one protected route. */
export function createElysia(resourceServer: ResourceServer) {
  const protect = createProtect(resourceServer);
  const read = protect({ scopes: ['read:messages'] }, (_request, { claims }) => Response.json({ reader: claims.sub }));
  return new Elysia().get('/messages', ({ request }) => read(request));
}
