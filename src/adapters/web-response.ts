import type { Refusal } from '../refusal/refusal.ts';
import type { Access } from '../resource-server/resource-server.ts';
import type { Checkpoint, RoutePolicy, Visitor } from './checkpoint.ts';
import type { MetadataAnswer } from './metadata.ts';

/** Calls the handler of an admitted request, or returns the refusal: the wrapper form for web-standard responses. */
export function passToWebHandler<Q, C>(
  checkpoint: Checkpoint<Q>,
  route: RoutePolicy<C>,
  visitor: Visitor<Q>,
  handle: (access: Access<C> | undefined) => Response | Promise<Response>,
): Promise<Response> {
  return checkpoint.pass<Response, C>(route, {
    ...visitor,
    admit: async (access) => {
      let response: Response;
      try {
        response = await handle(access);
      } catch (error) {
        const refusal = checkpoint.describeThrown(error, visitor);
        if (refusal === undefined) throw error;
        response = toResponse(refusal);
      }
      return access?.dpopNonce === undefined ? response : withNonce(response, access.dpopNonce);
    },
    refuse: toResponse,
  });
}

/** Sets the new nonce of an admitted request on its response (RFC 9449 §8.2). */
function withNonce(response: Response, nonce: string): Response {
  try {
    response.headers.set('dpop-nonce', nonce);
    return response;
  } catch {
    // The headers of a fetched response are immutable.
    const copy = new Response(response.body, response);
    copy.headers.set('dpop-nonce', nonce);
    return copy;
  }
}

export function toResponse({ status, headers, body }: Refusal): Response {
  return new Response(body, { status, headers });
}

export function toMetadataResponse(answer: MetadataAnswer | undefined): Response | undefined {
  return answer === undefined ? undefined : new Response(answer.body, answer);
}
