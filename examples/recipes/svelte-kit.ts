import type { ResourceServer } from 'portcullis';
import { accessOf, createAuthorize } from 'portcullis/fetch';

/** The members of a SvelteKit event that are read. */
interface Event {
  readonly url: URL;
  readonly request: Request;
}

/** Creates `handle` of `hooks.server.ts`. Endpoints below /api call `accessOf(event.request)`. */
export function createHandle(resourceServer: ResourceServer) {
  const authorize = createAuthorize(resourceServer)({ scopes: ['read:messages'] });
  return async <E extends Event>(input: {
    readonly event: E;
    readonly resolve: (event: E) => Response | Promise<Response>;
  }): Promise<Response> => {
    const { event, resolve } = input;
    if (!event.url.pathname.startsWith('/api/')) return resolve(event);
    const refused = await authorize(event.request);
    if (refused !== undefined) return refused;
    const response = await resolve(event);
    const { dpopNonce } = accessOf(event.request);
    if (dpopNonce !== undefined) response.headers.set('DPoP-Nonce', dpopNonce);
    return response;
  };
}
