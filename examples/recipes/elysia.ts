import { Elysia } from 'elysia';
import type { ResourceServer } from 'portcullis';
import { accessOf, createAuthorize } from 'portcullis/fetch';

/** An application with one protected route. */
export function createElysia(resourceServer: ResourceServer) {
  const authorize = createAuthorize(resourceServer);
  const read = authorize({ scopes: ['read:messages'] });
  return new Elysia().get('/messages', ({ request }) => ({ reader: accessOf(request).claims.sub }), {
    beforeHandle: async ({ request, set }) => {
      const refused = await read(request);
      if (refused !== undefined) return refused;
      const { dpopNonce } = accessOf(request);
      if (dpopNonce !== undefined) set.headers['dpop-nonce'] = dpopNonce;
      return undefined;
    },
  });
}
