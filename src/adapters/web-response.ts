import type { Connection } from '../http/request.ts';
import type { Refusal } from '../refusal/refusal.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../token/claims.ts';
import { type AdapterOptions, type Checkpoint, createCheckpoint, type Visitor } from './checkpoint.ts';
import type { RoutePolicy } from './forms.ts';
import type { MetadataAnswer } from './metadata.ts';

/** Options of adapters whose requests do not contain their connection. `Rest` is what the runtime passes after the request. */
export interface WebAdapterOptions<Q, Rest extends readonly unknown[] = []> extends AdapterOptions<Q> {
  /** Transport of a request; needed for proxies trusted by address. Default: unknown, with the scheme of the URL. */
  readonly connection?: ((request: Q, ...rest: Rest) => Connection | undefined) | undefined;
}

/** Creates the checkpoint of an adapter with {@link WebAdapterOptions}. Throws `TypeError` for invalid options. */
export function createWebCheckpoint<Q>(
  caller: string,
  server: ResourceServer<RegisteredClaims>,
  options: AdapterOptions<Q>,
  more: readonly string[] = [],
): Checkpoint<Q> {
  return createCheckpoint(caller, server, { options, more: ['connection', ...more] });
}

/** Calls the handler of an admitted request, or returns the refusal: the wrapper form for web-standard responses. */
export async function respondWeb<Q>(
  checkpoint: Checkpoint<Q>,
  route: RoutePolicy<unknown>,
  visit: Visitor<Q> & { readonly handle: (access: Access<unknown> | undefined) => Response | Promise<Response> },
): Promise<Response> {
  const { access, refusal } = await checkpoint.pass(route, visit);
  if (refusal !== undefined) return toResponse(refusal);
  let response: Response;
  try {
    response = await visit.handle(access);
  } catch (error) {
    const thrown = checkpoint.describeThrown(error, visit);
    if (thrown === undefined) throw error;
    response = toResponse(thrown);
  }
  return access?.dpopNonce === undefined ? response : withNonce(response, access.dpopNonce);
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
