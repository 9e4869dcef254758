import type { ResourceRequest } from '../../core/http/request.ts';
import { allowRequestedHeaders, type HeaderList, token } from '../../server/http/exchange.ts';
import type { RuleEntry } from '../rules/schema/rules-schema.ts';

export type GateCors = ReturnType<typeof createGateCors>;

// A response depends on the origin even if it does not allow it.
const vary = ['vary', 'Origin'];
const expose = ['access-control-expose-headers', 'WWW-Authenticate, DPoP-Nonce, Retry-After, X-Request-Id'];

/** Creates CORS headers. Origins are compared exactly; the value `*` allows every origin. */
export function createGateCors({ origins, credentials = false }: NonNullable<RuleEntry['cors']>) {
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
    /** Headers of a response to a preflight (Fetch Standard, CORS-preflight fetch). */
    describePreflight(request: ResourceRequest): HeaderList {
      const method = request.headers.get('access-control-request-method') ?? '';
      const methods = token.test(method) ? ['access-control-allow-methods', method] : [];
      return [...describe(request), ...methods, ...allowRequestedHeaders(request), 'access-control-max-age', '600'];
    },
  };
}
