import type { Connection } from '../http/request.ts';
import type { HandedClaims, Policy } from '../policy/policy.ts';
import type { ErrorBody, ErrorReport } from '../refusal/error-body.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';
import { checkRoute } from './admission.ts';
import { findAccessOf, requireAccessOf } from './admitted.ts';
import { checkAdapterOptions, createCheckpoint, demand } from './checkpoint.ts';
import { type AccessReaders, createForms, createMiddlewareForms } from './forms.ts';
import { type MetadataOptions, openMetadata } from './metadata.ts';
import { passToWebHandler, toMetadataResponse, toResponse } from './web-answer.ts';

export type { MetadataOptions } from './metadata.ts';

/** What the adapter may need to know of the runtime around it. `rest` is what the runtime passes after the request. */
export interface ProtectOptions {
  /**
   * The transport under a request; needed for proxies that are trusted by address. Default: unknown, and the scheme is
   * that of the URL.
   */
  readonly connection?: (request: Request, ...rest: never[]) => Connection | undefined;
  /** Called for every refusal, for logs and metrics. Errors it throws, or rejects with, are ignored. */
  readonly onRefused?: (error: unknown, request: Request) => unknown;
  /** Realm of the challenge for a request, such as the name of its tenant. Default: the audiences of the server. */
  readonly realm?: (request: Request) => string | undefined;
  /** Makes the body of a refusal for a request, such as one with its id. Default: the form that the server has. */
  readonly errorBody?: (report: ErrorReport, request: Request) => ErrorBody;
}

/**
 * Answers a request that was let in. `rest` is what the runtime passes after the request: an environment, a context; `C`
 * are the claims that the policy gives.
 */
export type ProtectedHandler<R extends Request, Rest extends readonly unknown[], C = Claims, A = Access<C>> = (
  request: R,
  access: A,
  ...rest: Rest
) => Response | Promise<Response>;

/** A handler behind its policy. */
export type FetchHandler<R extends Request, Rest extends readonly unknown[]> = (
  request: R,
  ...rest: Rest
) => Response | Promise<Response>;

/**
 * Puts a policy before a handler. A handler that takes `Access` cannot be mounted without one. Throws `TypeError` for a
 * policy that cannot work.
 */
export interface Protect<D = Claims> {
  <R extends Request, Rest extends readonly unknown[], C = D>(
    policy: Policy<C>,
    handler: ProtectedHandler<R, Rest, HandedClaims<C, D>>,
  ): FetchHandler<R, Rest>;
  /** The same for a route that is open as well: no `Authorization` and no `DPoP` → no access; all else is judged. */
  optional<R extends Request, Rest extends readonly unknown[], C = D>(
    policy: Policy<C>,
    handler: ProtectedHandler<R, Rest, HandedClaims<C, D>, Access<HandedClaims<C, D>> | undefined>,
  ): FetchHandler<R, Rest>;
}

/** Judges a request: the answer to one that is refused, `undefined` for one that is let in. */
export type AuthorizeRequest = (
  request: Request,
  ...rest: readonly unknown[]
) => Response | undefined | Promise<Response | undefined>;

/** Makes a judge of a policy; without one any valid token will do. Throws `TypeError` for a policy that cannot work. */
export interface Authorize<D = Claims> extends AccessReaders<Request, D> {
  (policy?: Policy<unknown>): AuthorizeRequest;
  /** The same for routes that are open as well: no `Authorization` and no `DPoP` → no access; all else is judged. */
  optional(policy?: Policy<unknown>): AuthorizeRequest;
}

/**
 * Creates the `protect` function for handlers from `Request` to `Response`: those of Bun, Deno, Cloudflare Workers, Next.js and
 * others. Nothing is awaited unless the resource server has to wait.
 *
 * @example
 * const protect = createProtect(resourceServer);
 * export const GET = protect({ scopes: ['read:messages'] }, (request, access) => Response.json(access.claims));
 */
export function createProtect<D extends RegisteredClaims = Claims>(
  server: ResourceServer<D>,
  options: ProtectOptions = {},
): Protect<D> {
  const checkpoint = open('createProtect', server, options);
  const forms = createForms(
    (credentials) =>
      <R extends Request, Rest extends readonly unknown[], C>(
        policy: Policy<C>,
        handler: ProtectedHandler<R, Rest, C>,
      ): FetchHandler<R, Rest> => {
        checkRoute(policy, handler);
        const asked = demand(policy, credentials);
        return (request, ...rest) =>
          // Absent only if credentials are optional, and then the handler is one that knows.
          passToWebHandler(checkpoint, asked, see(options, request, rest), (access) =>
            handler(request, access as Access<C>, ...rest),
          );
      },
  );
  // The handler of `optional` has the type that the interface says.
  return forms as Protect<D>;
}

/**
 * Creates the `authorize` function for places without handlers to wrap, such as middleware of Next.js. What is behind it
 * finds the access with `accessOf(request)`.
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
  const checkpoint = open('createAuthorize', server, options);
  return createMiddlewareForms(
    { accessOf, findAccess },
    (asked): AuthorizeRequest =>
      (request, ...rest) =>
        checkpoint.pass<Response | undefined, unknown>(asked, {
          ...see(options, request, rest),
          admit: () => undefined,
          refuse: toResponse,
        }),
  );
}

/**
 * Serves the metadata of the resource (RFC 9728), and lets challenges link to it. Mount it at the root. Throws `TypeError`
 * for options that cannot work.
 *
 * @example
 * const answerMetadata = createMetadata(resourceServer, {
 *   resource: 'https://api.example/', authorizationServers: ['https://idp.example/'],
 * });
 * const answer = (request: Request) => answerMetadata(request) ?? new Response('what is not the metadata');
 */
export function createMetadata(
  server: ResourceServer<RegisteredClaims>,
  options: MetadataOptions,
): (request: Request) => Response | undefined {
  const metadata = openMetadata(server, options);
  return ({ method, url }) => toMetadataResponse(metadata.answer(method, new URL(url).pathname));
}

/** What a request that was let in may do, with the claims that the policy gives. `TypeError` if nobody has let it in. */
export function accessOf<C = RegisteredClaims>(
  request: Request,
  policy?: Policy<C>,
): Access<HandedClaims<C, RegisteredClaims>> {
  return requireAccessOf(request, policy);
}

/** The same; `undefined` if nobody has let it in. */
export function findAccess<C = RegisteredClaims>(
  request: Request,
  policy?: Policy<C>,
): Access<HandedClaims<C, RegisteredClaims>> | undefined {
  return findAccessOf(request, policy);
}

function see(options: ProtectOptions, request: Request, rest: readonly unknown[]) {
  // Whoever writes the function knows what the runtime passes; here it is passed on unseen.
  const connection = options.connection?.(request, ...(rest as never[]));
  return { key: request, request, connection, told: request };
}

function open(caller: string, server: ResourceServer<RegisteredClaims>, options: ProtectOptions) {
  checkAdapterOptions(caller, options, ['connection', 'onRefused', 'realm', 'errorBody']);
  return createCheckpoint<Request>(caller, server, options);
}
