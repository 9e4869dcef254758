import type { Context, Env, ErrorHandler, Handler, Input, MiddlewareHandler, Next, ValidationTargets } from 'hono';
import type { BlankInput } from 'hono/types';
import type { Connection } from '../http/request.ts';
import type { HandedClaims, Policy } from '../policy/policy.ts';
import type { ErrorBody, ErrorReport } from '../refusal/error-body.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';
import { checkRoute } from './admission.ts';
import { findAccessOf, requireAccessOf } from './admitted.ts';
import { checkAdapterOptions, createCheckpoint, demand } from './checkpoint.ts';
import { createForms } from './forms.ts';
import { type MetadataOptions, openMetadata } from './metadata.ts';
import { passToWebHandler, toMetadataResponse, toResponse } from './web-answer.ts';

export type { MetadataOptions } from './metadata.ts';

/** What the adapter may need to know of the application around it. */
export interface ProtectOptions<E extends Env> {
  /** The transport under a request; needed for proxies that are trusted by address. */
  readonly connection?: (c: Context<E>) => Connection | undefined;
  /** Called for every refusal, for logs and metrics. Errors it throws, or rejects with, are ignored. */
  readonly onRefused?: (error: unknown, c: Context<E>) => unknown;
  /** Realm of the challenge for a request, such as the name of its tenant. Default: the audiences of the server. */
  readonly realm?: (c: Context<E>) => string | undefined;
  /** Makes the body of a refusal for a request, such as one with its id. Default: the form that the server has. */
  readonly errorBody?: (report: ErrorReport, c: Context<E>) => ErrorBody;
}

/** Any path: `c.req.param('id')` is `string | undefined`, as in every handler of Hono that stands apart from its route. */
export type AnyPath = Parameters<Handler>[0] extends Context<infer _E, infer P> ? P : never;

/** Any validated input, with the types that Hono gives to each target. */
export interface AnyInput {
  readonly in: ValidationTargets;
  readonly out: ValidationTargets;
}

/**
 * Answers a request that was let in; `C` are the claims that the policy gives. `P` and `I` are the path and the validated
 * input of the route, as the annotation of `c` says; `R` is the answer, as `hc` sees it.
 */
export type ProtectedHandler<
  E extends Env,
  C = Claims,
  A = Access<C>,
  P extends string = AnyPath,
  I extends Input = AnyInput,
  R = Response | Promise<Response>,
> = (c: Context<E, P, I>, access: A) => R;

/** A handler behind its policy: of the path and the input that `c` was annotated with, or of any. */
export type RouteHandler<E extends Env, P extends string, I extends Input, R> = (
  c: Context<E, P, AnyInput extends I ? BlankInput : I>,
  next: Next,
) => R;

/**
 * Puts a policy before a handler. A handler that takes `Access` cannot be mounted without one. Throws `TypeError` for a
 * policy that cannot work.
 */
export interface Protect<E extends Env, D = Claims> {
  <C = D, R = Response | Promise<Response>, P extends string = AnyPath, I extends Input = AnyInput>(
    policy: Policy<C>,
    handler: ProtectedHandler<E, HandedClaims<C, D>, Access<HandedClaims<C, D>>, P, I, R>,
  ): RouteHandler<E, P, I, R>;
  /** The same for a route that is open as well: no `Authorization` and no `DPoP` → no access; all else is judged. */
  optional<C = D, R = Response | Promise<Response>, P extends string = AnyPath, I extends Input = AnyInput>(
    policy: Policy<C>,
    handler: ProtectedHandler<E, HandedClaims<C, D>, Access<HandedClaims<C, D>> | undefined, P, I, R>,
  ): RouteHandler<E, P, I, R>;
}

/** Middleware that leaves the types of the route as Hono finds them, and adds `c.var.access`. */
export type AuthorizeMiddleware<A> = MiddlewareHandler<{ Variables: { access: A } }, string, BlankInput>;

/** What `accessOf` needs of a context of Hono, whatever the types of its route are. */
export type JudgedContext = { readonly req: { readonly raw: Request } };

/** Makes middleware of a policy; without one any valid token will do. Throws `TypeError` for a policy that cannot work. */
export interface Authorize<D = Claims> {
  <C = D>(policy?: Policy<C>): AuthorizeMiddleware<Access<HandedClaims<C, D>>>;
  /** The same for routes that are open as well: no `Authorization` and no `DPoP` → no access; all else is judged. */
  optional<C = D>(policy?: Policy<C>): AuthorizeMiddleware<Access<HandedClaims<C, D>> | undefined>;
}

/**
 * Creates the `protect` function of a Hono application. Nothing is awaited unless the resource server has to wait.
 *
 * @example
 * const protect = createProtect(resourceServer);
 * app.get('/messages', protect({ scopes: ['read:messages'] }, (c, access) => c.json(access.claims)));
 */
export function createProtect<E extends Env = Env, D extends RegisteredClaims = Claims>(
  server: ResourceServer<D>,
  options: ProtectOptions<E> = {},
): Protect<E, D> {
  const checkpoint = open('createProtect', server, options);
  const forms = createForms(
    (credentials) =>
      <C>(policy: Policy<C>, handler: (c: Context<E>, access: Access<C>) => Response | Promise<Response>) => {
        checkRoute(policy, handler);
        const asked = demand(policy, credentials);
        return (c: Context<E>): Response | Promise<Response> =>
          // Absent only if credentials are optional, and then the handler is one that knows.
          passToWebHandler(checkpoint, asked, see(options, c), (access) => handler(c, access as Access<C>));
      },
  );
  // Path, input, answer and the handler of `optional` have the types that the interface says; nothing looks at them here.
  return forms as unknown as Protect<E, D>;
}

/**
 * Creates the `authorize` function of a Hono application: middleware for a route, a path or the whole application.
 * Handlers behind it find the access in `c.var.access`.
 *
 * @example
 * const authorize = createAuthorize(resourceServer);
 * app.get('/messages/:id', authorize({ scopes: ['read:messages'] }), (c) =>
 *   c.json({ id: c.req.param('id'), reader: c.var.access.claims.sub }),
 * );
 */
export function createAuthorize<E extends Env = Env, D extends RegisteredClaims = Claims>(
  server: ResourceServer<D>,
  options: ProtectOptions<E> = {},
): Authorize<D> {
  const checkpoint = open('createAuthorize', server, options);
  const forms = createForms((credentials) => <C>(policy?: Policy<C>): AuthorizeMiddleware<Access<C>> => {
    const asked = demand(policy, credentials);
    return async (context, next) => {
      const c = context as unknown as Context<E>; // the application has the variables that it says
      const admit = async (access: Access<C> | undefined): Promise<undefined> => {
        if (access !== undefined) context.set('access', access);
        await next();
        if (access?.dpopNonce !== undefined) context.header('dpop-nonce', access.dpopNonce);
      };
      return checkpoint.pass<Response | undefined, C>(asked, { ...see(options, c), admit, refuse: toResponse });
    };
  });
  // Without credentials `optional` sets no access, as its type says.
  return forms as Authorize<D>;
}

/**
 * Creates an error handler: an `AccessError` that a handler has thrown is answered as that refusal. Every other error
 * goes to `otherwise`. Default: what Hono does without an error handler.
 *
 * @example
 * app.onError(answerAccessErrors(resourceServer));
 */
export function answerAccessErrors<E extends Env = Env>(
  server: ResourceServer<RegisteredClaims>,
  options: ProtectOptions<E> & { readonly otherwise?: ErrorHandler<E> } = {},
): ErrorHandler<E> {
  checkAdapterOptions('answerAccessErrors', options, ['connection', 'onRefused', 'realm', 'errorBody', 'otherwise']);
  const checkpoint = createCheckpoint<Context<E>>('answerAccessErrors', server, options);
  const otherwise: ErrorHandler<E> = options.otherwise ?? answerAsHono;
  return (error, c) => {
    const refusal = checkpoint.describeThrown(error, see(options, c));
    return refusal === undefined ? otherwise(error, c) : toResponse(refusal);
  };
}

/**
 * Serves the metadata of the resource (RFC 9728), and lets challenges link to it. Mount it at the root. Throws `TypeError`
 * for options that cannot work.
 *
 * @example
 * app.use(createMetadata(resourceServer, { resource: 'https://api.example/', authorizationServers: ['https://idp.example/'] }));
 */
export function createMetadata(server: ResourceServer<RegisteredClaims>, options: MetadataOptions): MiddlewareHandler {
  const metadata = openMetadata(server, options);
  return async (c, next) => toMetadataResponse(metadata.answer(c.req.method, c.req.path)) ?? next();
}

/** What a request that was let in may do, with the claims that the policy gives. `TypeError` if nobody has let it in. */
export function accessOf<C = RegisteredClaims>(
  c: JudgedContext,
  policy?: Policy<C>,
): Access<HandedClaims<C, RegisteredClaims>> {
  return requireAccessOf(c, policy);
}

/** The same; `undefined` if nobody has let it in. */
export function findAccess<C = RegisteredClaims>(
  c: JudgedContext,
  policy?: Policy<C>,
): Access<HandedClaims<C, RegisteredClaims>> | undefined {
  return findAccessOf(c, policy);
}

const answerAsHono = (error: Parameters<ErrorHandler>[0], c: Pick<Context, 'text'>): Response => {
  if ('getResponse' in error) return error.getResponse();
  // biome-ignore lint/suspicious/noConsole: Hono itself logs an error that nobody answers, in this way.
  console.error(error);
  return c.text('Internal Server Error', 500);
};

function see<E extends Env>(options: ProtectOptions<E>, c: Context<E>) {
  return { key: c, request: c.req.raw, connection: options.connection?.(c), told: c };
}

function open<E extends Env>(caller: string, server: ResourceServer<RegisteredClaims>, options: ProtectOptions<E>) {
  checkAdapterOptions(caller, options, ['connection', 'onRefused', 'realm', 'errorBody']);
  return createCheckpoint<Context<E>>(caller, server, options);
}
