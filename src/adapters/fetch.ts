import { attempt } from '../core/attempt.ts';
import type { HandedClaims, Policy } from '../core/policy/policy.ts';
import type { Access, ResourceServer } from '../core/resource-server/resource-server.ts';
import type { Claims, RegisteredClaims } from '../core/token/claims.ts';
import { createWrapperForms, type Forms } from './forms.ts';
import { type MetadataOptions, openMetadata } from './metadata.ts';
import { createWebCheckpoint, toMetadataResponse, toResponse, type WebAdapterOptions } from './web-response.ts';

export type { RefusedRequest } from './checkpoint.ts';
export { createBackchannelLogout, createSignalsReceiver, type WebLogoutOptions } from './events/web-events.ts';
export type { MetadataOptions } from './metadata.ts';

/** Options of the adapter. */
export type ProtectOptions = WebAdapterOptions<Request, never[]>;

/**
 * Responds to an admitted request. `rest` is what the runtime passes after the request: an environment, a context; `C` are the
 * claims that the policy provides.
 */
export type ProtectedHandler<R extends Request, Rest extends readonly unknown[], C = Claims, A = Access<C>> = (
  request: R,
  access: A,
  ...rest: Rest
) => Response | Promise<Response>;

/** A handler wrapped in its policy. */
export type FetchHandler<R extends Request, Rest extends readonly unknown[]> = (
  request: R,
  ...rest: Rest
) => Response | Promise<Response>;

/** The wrapper for required credentials (`N` is `never`), or for optional ones (`N` is `undefined`). */
type FetchWrapper<D, N> = <R extends Request, Rest extends readonly unknown[], C = D>(
  policy: Policy<C>,
  handler: ProtectedHandler<R, Rest, HandedClaims<C, D>, Access<HandedClaims<C, D>> | N>,
) => FetchHandler<R, Rest>;

/** Wraps a handler in a policy. A handler that takes `Access` cannot be mounted without one. Throws `TypeError` for an invalid policy. */
export type Protect<D = Claims> = Forms<FetchWrapper<D, never>, FetchWrapper<D, undefined>>;

/**
 * Creates the `protect` function for handlers from `Request` to `Response`: those of Bun, Deno, Cloudflare Workers, Next.js and
 * others.
 *
 * @example
 * const protect = createProtect(resourceServer);
 * export const GET = protect({ scopes: ['read:messages'] }, (request, access) => Response.json(access.claims));
 */
export function createProtect<D extends RegisteredClaims = Claims>(
  server: ResourceServer<D>,
  options: ProtectOptions = {},
): Protect<D> {
  const checkpoint = createWebCheckpoint('createProtect', server, options);
  type Handler = ProtectedHandler<Request, readonly unknown[], unknown, Access<unknown> | undefined>;
  return createWrapperForms((route, handler: Handler) => async (request: Request, ...rest: readonly unknown[]) => {
    // The author of the function knows what the runtime passes; here it is passed on unchecked.
    const connection = options.connection?.(request, ...(rest as never[]));
    const visitor = { key: request, request, connection, original: request };
    const { access, refusal } = await checkpoint.pass(route, visitor);
    if (refusal !== undefined) return toResponse(refusal);
    let response: Response;
    try {
      response = await handler(request, access, ...rest);
    } catch (error) {
      const thrown = checkpoint.describeThrown(error, visitor);
      if (thrown === undefined) throw error;
      response = toResponse(thrown);
    }
    return access?.dpopNonce === undefined ? response : withNonce(response, access.dpopNonce);
  });
}

/**
 * Creates a function that serves the metadata of the resource (RFC 9728), and turns on the link to it in challenges. It returns
 * `undefined` for every other path. Throws `TypeError` for invalid options.
 *
 * @example
 * const answerMetadata = createMetadata(resourceServer, {
 *   resource: 'https://api.example/', authorizationServers: ['https://idp.example/'],
 * });
 * const answer = (request: Request) => answerMetadata(request) ?? new Response('another path');
 */
export function createMetadata(
  server: ResourceServer<RegisteredClaims>,
  options: MetadataOptions,
): (request: Request) => Response | undefined {
  const metadata = openMetadata(server, options);
  return ({ method, url }) => toMetadataResponse(metadata.answer(method, new URL(url).pathname));
}

/**
 * Sets the new nonce of an admitted request on its response (RFC 9449 §8.2). A response that can neither be changed nor copied
 * remains: Deno's response to an upgrade has the status 101, and Bun's handler returns none.
 */
function withNonce(response: Response, nonce: string): Response {
  const set = (to: Response): Response => {
    to.headers.set('dpop-nonce', nonce);
    return to;
  };
  // The headers of a fetched response are immutable.
  return attempt(set, response) ?? attempt(() => set(new Response(response.body, response))) ?? response;
}
