import type { ResourceRequest } from '../core/http/request.ts';
import { Answer, allowRequestedHeaders, type HeaderList } from '../server/http/exchange.ts';

const preflightHeaders: HeaderList = [
  ...['access-control-allow-methods', 'GET,HEAD'],
  ...['access-control-max-age', '600'],
];
const everyAnswer: HeaderList = [
  // The response depends on the origin even if it is refused: a cache must not mix them up.
  ...['vary', 'Origin'],
  ...['access-control-expose-headers', 'WWW-Authenticate,DPoP-Nonce,Retry-After,X-Request-Id'],
];

export type Cors = ReturnType<typeof createCors>;

/** Origins are compared exactly. Cookies and other credentials of the browser are never allowed. */
export function createCors(origins: readonly string[]) {
  const allowed: ReadonlySet<string> = new Set(origins);
  const allow = (answer: Answer, request: ResourceRequest): Answer => {
    const origin = request.headers.get('origin');
    if (origin === null || !allowed.has(origin)) return answer.with(...everyAnswer);
    return answer.with(...everyAnswer, 'access-control-allow-origin', origin);
  };
  const preflight = new Answer(204, preflightHeaders, '');
  return {
    allow,
    preflight: (request: ResourceRequest) => allow(preflight, request).with(...allowRequestedHeaders(request)),
  };
}

const openPreflight = new Answer(
  204,
  [
    ...['access-control-allow-origin', '*', 'access-control-allow-methods', 'GET, HEAD, OPTIONS'],
    ...['access-control-allow-headers', '*', 'access-control-max-age', '600'],
  ],
  '',
);

/** For metadata, which scripts of every origin may read, as at the gate: it contains no secret. */
export const openCors: Cors = {
  allow: (answer) => answer.with('access-control-allow-origin', '*'),
  preflight: () => openPreflight,
};
