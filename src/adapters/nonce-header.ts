import { after, type MaybePromise } from '../maybe-promise.ts';
import type { Access } from '../resource-server/resource-server.ts';

/** Puts the fresh nonce of an admitted request on its answer (RFC 9449 §8.2). */
export function addNonce(response: MaybePromise<Response>, { dpopNonce }: Access<unknown>): MaybePromise<Response> {
  if (dpopNonce === undefined) return response;
  return after(response, withNonce, dpopNonce);
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
