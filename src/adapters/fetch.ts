import type { HandedClaims, Policy } from '../policy/policy.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';
import { type AccessReaders, findAccess as findGrantedAccess, accessOf as readAccess } from './admission.ts';
import type { Visitor } from './checkpoint.ts';
import { type AuthorizeForms, createMiddlewareForms, createWrapperForms, type Forms } from './forms.ts';
import { type MetadataOptions, openMetadata } from './metadata.ts';
import {
  createWebCheckpoint,
  respondWeb,
  toMetadataResponse,
  toResponse,
  type WebAdapterOptions,
} from './web-response.ts';

export type { RefusedRequest } from './checkpoint.ts';
export { createBackchannelLogout, createSignalsReceiver } from './events/web-events.ts';
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

/** Validates a request. Returns the response of a refused one, and `undefined` for an admitted one. */
export type AuthorizeRequest = (
  request: Request,
  ...rest: readonly unknown[]
) => Response | undefined | Promise<Response | undefined>;

/** Creates a check from a policy; without one, any valid token is admitted. Throws `TypeError` for an invalid policy. */
export type Authorize<D = Claims> = AuthorizeForms<AuthorizeRequest, Request, D>;

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
  return createWrapperForms((route, handler: Handler) => (request: Request, ...rest: readonly unknown[]) => {
    const handle = (access: Access<unknown> | undefined) => handler(request, access, ...rest);
    return respondWeb(checkpoint, route, { ...describe(options, request, rest), handle });
  });
}

/**
 * Creates the `authorize` function for code without handlers to wrap, such as middleware of Next.js. Code after it reads the
 * access with `accessOf(request)`.
 *
 * @example
 * const authorize = createAuthorize(resourceServer)({ scopes: ['read:messages'] });
 * export async function answer(request: Request): Promise<Response> {
 *   return (await authorize(request)) ?? Response.json({ reader: accessOf(request).claims.sub });
 * }
 */
export function createAuthorize<D extends RegisteredClaims = Claims>(
  server: ResourceServer<D>,
  options: ProtectOptions = {},
): Authorize<D> {
  const checkpoint = createWebCheckpoint('createAuthorize', server, options);
  return createMiddlewareForms(
    (route): AuthorizeRequest =>
      async (request, ...rest) => {
        const { refusal } = await checkpoint.pass(route, describe(options, request, rest));
        return refusal && toResponse(refusal);
      },
  );
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

/** Returns the access of a request. Throws `TypeError` if the request was not authorized. */
export const accessOf: AccessReaders<Request>['accessOf'] = readAccess;

/** Like `accessOf`, but returns `undefined` without access. */
export const findAccess: AccessReaders<Request>['findAccess'] = findGrantedAccess;

function describe(options: ProtectOptions, request: Request, rest: readonly unknown[]): Visitor<Request> {
  // The author of the function knows what the runtime passes; here it is passed on unchecked.
  const connection = options.connection?.(request, ...(rest as never[]));
  return { key: request, request, connection, original: request };
}
