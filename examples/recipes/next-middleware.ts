import type { ResourceServer } from 'portcullis';
import { createAuthorize } from 'portcullis/fetch';

/**
 * The function that `middleware.ts` (`proxy.ts` from Next.js 16 on) exports: a refused request is answered, every other one goes
 * on to its route.
 */
export function createMiddleware(resourceServer: ResourceServer) {
  const authorize = createAuthorize(resourceServer)({ scopes: ['read:messages'] });
  return (request: Request): Response | undefined | Promise<Response | undefined> => authorize(request);
}

/** Which paths Next.js asks it for. */
export const config = { matcher: '/api/:path*' };
