import type { Access } from '../resource-server/resource-server.ts';

/** Puts the fresh nonce of an admitted request on its answer (RFC 9449 §8.2). */
export function addNonce(
  response: Response | Promise<Response>,
  { dpopNonce }: Access<unknown>,
): Response | Promise<Response> {
  if (dpopNonce === undefined) return response;
  return response instanceof Promise
    ? response.then((settled) => withNonce(settled, dpopNonce))
    : withNonce(response, dpopNonce);
}

function withNonce(response: Response, nonce: string): Response {
  try {
    response.headers.set('dpop-nonce', nonce);
    return response;
  } catch {
    // The headers of an answer that was fetched from elsewhere cannot be changed.
    const copy = new Response(response.body, response);
    copy.headers.set('dpop-nonce', nonce);
    return copy;
  }
}
