import { normaliseUrl } from '../../dpop/htu.ts';

export interface Route {
  readonly path: string;
}

/** Finds the route of a request target: a path with a query, or a complete URL. Other targets are malformed. */
export type FindRoute<R extends Route> = (target: string) => R | 'not_found' | 'malformed';

const anyOrigin = 'http://localhost';

/** Creates a router of exact paths. `/a/` and `/A` are not `/a`; equivalent spellings of RFC 3986 §6.2.2 are. */
export function createRouter<R extends Route>(routes: readonly R[]): FindRoute<R> {
  const byPath: ReadonlyMap<string, R> = new Map(routes.map((route) => [route.path, route]));
  return (target) => {
    const query = target.indexOf('?');
    const route = byPath.get(query < 0 ? target : target.slice(0, query));
    if (route !== undefined) return route;
    const url = normaliseUrl(target.startsWith('/') ? anyOrigin + target : target);
    if (url === undefined) return 'malformed';
    return byPath.get(url.slice(url.indexOf('/', url.indexOf('//') + 2))) ?? 'not_found';
  };
}
