import type { ResourceRequest } from '../../core/http/request.ts';
import type { HeaderList } from '../../server/http/exchange.ts';

export interface GateCors {
  allows(origin: string): boolean;
  describe(request: ResourceRequest): HeaderList;
  /** Headers of a response to a preflight (Fetch Standard, CORS-preflight fetch). */
  describePreflight(request: ResourceRequest): HeaderList;
}

export interface GateCorsOptions {
  /** Compared exactly; The value `*` allows every origin. */
  readonly origins: readonly string[];
  readonly credentials?: boolean | undefined;
}

// A response depends on the origin even if it does not allow it.
const vary = ['vary', 'Origin'];
const expose = ['access-control-expose-headers', 'WWW-Authenticate, DPoP-Nonce, Retry-After, X-Request-Id'];
/** Values that a browser sends: methods, and lists of header names. */
const requested = /^[\w!#$%&'*+.^`|~, -]{1,2048}$/;

export function createGateCors({ origins, credentials = false }: GateCorsOptions): GateCors {
  const allowed = new Set(origins);
  const allowsAll = allowed.has('*');
  const allows = (origin: string): boolean => origin !== '' && (allowsAll || allowed.has(origin));
  const describe = (request: ResourceRequest): HeaderList => {
    const origin = request.headers.get('origin') ?? '';
    if (!allows(origin)) return vary;
    return [
      ...[...vary, ...expose, 'access-control-allow-origin', allowsAll ? '*' : origin],
      ...(credentials ? ['access-control-allow-credentials', 'true'] : []),
    ];
  };
  return {
    allows,
    describe,
    describePreflight(request) {
      const echo = (name: 'method' | 'headers'): HeaderList => {
        const value = request.headers.get(`access-control-request-${name}`) ?? '';
        return requested.test(value) ? [`access-control-allow-${name === 'method' ? 'methods' : name}`, value] : [];
      };
      return [...describe(request), ...echo('method'), ...echo('headers'), 'access-control-max-age', '600'];
    },
  };
}
