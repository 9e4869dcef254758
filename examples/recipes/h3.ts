import { H3 } from 'h3';
import type { ResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/fetch';

/** An application with one protected route. */
export function createH3(resourceServer: ResourceServer): H3 {
  const protect = createProtect(resourceServer);
  const read = protect({ scopes: ['read:messages'] }, (_request, { claims }) => Response.json({ reader: claims.sub }));
  return new H3().get('/messages', (event) => read(event.req));
}
