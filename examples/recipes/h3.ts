import { H3, type Middleware } from 'h3';
import type { ResourceServer } from 'portcullis';
import { accessOf, createAuthorize } from 'portcullis/fetch';

/** An application with one protected route. */
export function createH3(resourceServer: ResourceServer): H3 {
  const authorize = createAuthorize(resourceServer)({ scopes: ['read:messages'] });
  const middleware: Middleware = async (event) => {
    const refused = await authorize(event.req);
    if (refused !== undefined) return refused;
    const { dpopNonce } = accessOf(event.req);
    if (dpopNonce !== undefined) event.res.headers.set('DPoP-Nonce', dpopNonce);
    return undefined;
  };
  return new H3().get('/messages', (event) => ({ reader: accessOf(event.req).claims.sub }), {
    middleware: [middleware],
  });
}
