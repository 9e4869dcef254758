import type { ResourceRequest } from '../core/http/request.ts';
import { metadataPath } from '../core/refusal/challenge.ts';
import { createRouter, findHeadRefusal } from '../server/http/exchange.ts';
import type { Settings } from '../server/settings/settings.ts';
import type { Endpoint } from '../server/variants/endpoints.ts';

/** Paths of the documentation. */
export const docsPaths = { document: '/openapi.json', page: '/docs' } as const;

/** Endpoints for events have credentials of their own, or none. */
const ofEvents = /^(?:\/backchannel-logout$|\/shared-signals\/)/;

/**
 * Creates a function that finds what the service requires of a request: a policy, `open` if it reads no token, or the
 * status of its response if it serves no such request; `undefined` for an endpoint for events.
 */
export function createFindAccess({ variant, docs, corsOrigins }: Pick<Settings, 'variant' | 'docs' | 'corsOrigins'>) {
  const open = [metadataPath, ...(docs ? Object.values(docsPaths) : [])];
  const findRoute = createRouter<Pick<Endpoint, 'path' | 'access'>>([
    ...variant.endpoints,
    ...open.map((path) => ({ path, access: 'open' }) as const),
  ]);
  return (request: ResourceRequest): Endpoint['access'] | 400 | 404 | 405 | 417 | 431 | undefined => {
    const { method, url, target = url } = request;
    const refusal = findHeadRefusal(request);
    if (refusal !== undefined) return refusal;
    const route = findRoute(target);
    const isRoute = typeof route === 'object';
    const hasCors = corsOrigins.length > 0 || (isRoute && route.path === metadataPath);
    if (method === 'OPTIONS' && hasCors) return 'open';
    if (isRoute) return method === 'GET' || method === 'HEAD' ? route.access : 405;
    if (route === 'malformed') return 400;
    return ofEvents.test(new URL(url).pathname) ? undefined : 404;
  };
}
