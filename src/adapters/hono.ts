import type { Context, Env, ErrorHandler, Handler, Input, MiddlewareHandler, Next, ValidationTargets } from 'hono';
import type { BlankInput } from 'hono/types';
import type { BackchannelLogoutOptions } from '../logout/backchannel-logout.ts';
import type { HandedClaims, Policy } from '../policy/policy.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { SignalsReceiverOptions } from '../signals/receiver.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';
import { type AccessReaders, findAccess as findGrantedAccess, accessOf as readAccess } from './admission.ts';
import type { Visitor } from './checkpoint.ts';
import * as events from './events/web-events.ts';
import { createForms, createWrapperForms, type Forms, readRoutePolicy } from './forms.ts';
import { type MetadataOptions, openMetadata } from './metadata.ts';
import {
  createWebCheckpoint,
  respondWeb,
  toMetadataResponse,
  toResponse,
  type WebAdapterOptions,
} from './web-response.ts';

export type { RefusedRequest } from './checkpoint.ts';
export type { MetadataOptions } from './metadata.ts';

/** Options of the adapter. */
export type ProtectOptions<E extends Env> = WebAdapterOptions<Context<E>>;

/** Any path: `c.req.param('id')` is `string | undefined`, as in every handler of Hono that is written apart from its route. */
export type AnyPath = Parameters<Handler>[0] extends Context<infer _E, infer P> ? P : never;

/** Any validated input, with Hono's type of each target. */
export interface AnyInput {
  readonly in: ValidationTargets;
  readonly out: ValidationTargets;
}

/**
 * Responds to an admitted request; `C` are the claims that the policy provides. `P` and `I` are the path and the validated
 * input of the route, from the annotation of `c`; `R` is the response that `hc` infers.
 */
export type ProtectedHandler<
  E extends Env,
  C = Claims,
  A = Access<C>,
  P extends string = AnyPath,
  I extends Input = AnyInput,
  R = Response | Promise<Response>,
> = (c: Context<E, P, I>, access: A) => R;

/** A handler wrapped in its policy, for the path and the input that annotate `c`, or for any. */
export type RouteHandler<E extends Env, P extends string, I extends Input, R> = (
  c: Context<E, P, AnyInput extends I ? BlankInput : I>,
  next: Next,
) => R;

/** The wrapper for required credentials (`N` is `never`), or for optional ones (`N` is `undefined`). */
type HonoWrapper<E extends Env, D, N> = <
  C = D,
  R = Response | Promise<Response>,
  P extends string = AnyPath,
  I extends Input = AnyInput,
>(
  policy: Policy<C>,
  handler: ProtectedHandler<E, HandedClaims<C, D>, Access<HandedClaims<C, D>> | N, P, I, R>,
) => RouteHandler<E, P, I, R>;

/** Wraps a handler in a policy. A handler that takes `Access` cannot be mounted without one. Throws `TypeError` for an invalid policy. */
export type Protect<E extends Env, D = Claims> = Forms<HonoWrapper<E, D, never>, HonoWrapper<E, D, undefined>>;

/** Middleware that adds `c.var.access` and leaves the types of the route as Hono infers them. */
export type AuthorizeMiddleware<A> = MiddlewareHandler<{ Variables: { access: A } }, string, BlankInput>;

/** The member of a Hono context that `accessOf` requires, regardless of the types of its route. */
export type JudgedContext = { readonly req: { readonly raw: Request } };

/** Creates middleware of Hono for required credentials (`N` is `never`), or for optional ones (`N` is `undefined`). */
type HonoMiddleware<D, N> = <C = D>(policy?: Policy<C>) => AuthorizeMiddleware<Access<HandedClaims<C, D>> | N>;

/** Creates middleware from a policy; without one, any valid token is admitted. Throws `TypeError` for an invalid policy. */
export type Authorize<D = Claims> = Forms<HonoMiddleware<D, never>, HonoMiddleware<D, undefined>>;

/**
 * Creates the `protect` function of a Hono application.
 *
 * @example
 * const protect = createProtect(resourceServer);
 * app.get('/messages', protect({ scopes: ['read:messages'] }, (c, access) => c.json(access.claims)));
 */
export function createProtect<E extends Env = Env, D extends RegisteredClaims = Claims>(
  server: ResourceServer<D>,
  options: ProtectOptions<E> = {},
): Protect<E, D> {
  const checkpoint = createWebCheckpoint('createProtect', server, options);
  type Handler = ProtectedHandler<E, unknown, Access<unknown> | undefined>;
  return createWrapperForms((route, handler: Handler) => (c: Context<E>) => {
    const handle = (access: Access<unknown> | undefined) => handler(c, access);
    return respondWeb(checkpoint, route, { ...describe(options, c), handle });
  });
}

/**
 * Creates the `authorize` function of a Hono application: middleware for a route, a path or the entire application.
 * Handlers after it read the access in `c.var.access`.
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
  const checkpoint = createWebCheckpoint('createAuthorize', server, options);
  const forms = createForms((credentials) => <C>(policy?: Policy<C>): AuthorizeMiddleware<Access<C>> => {
    const route = readRoutePolicy(policy, credentials);
    return async (context, next) => {
      const c = context as unknown as Context<E>; // the application states its variables
      const { access, refusal } = await checkpoint.pass(route, describe(options, c));
      if (refusal !== undefined) return toResponse(refusal);
      if (access !== undefined) context.set('access', access);
      await next();
      if (access?.dpopNonce !== undefined) context.header('dpop-nonce', access.dpopNonce);
      return undefined;
    };
  });
  // Without credentials `optional` sets no access; the interface states it.
  return forms as Authorize<D>;
}

/**
 * Creates an error handler: it responds to an `AccessError` that a handler has thrown with that refusal. Every other error
 * is passed to `otherwise`. Default: the behaviour of Hono without an error handler.
 *
 * @example
 * app.onError(answerAccessErrors(resourceServer));
 */
export function answerAccessErrors<E extends Env = Env>(
  server: ResourceServer<RegisteredClaims>,
  options: ProtectOptions<E> & { readonly otherwise?: ErrorHandler<E> } = {},
): ErrorHandler<E> {
  const checkpoint = createWebCheckpoint('answerAccessErrors', server, options, ['otherwise']);
  const { otherwise = respondAsHono } = options;
  return (error, c) => {
    const refusal = checkpoint.describeThrown(error, describe(options, c));
    return refusal === undefined ? otherwise(error, c) : toResponse(refusal);
  };
}

/**
 * Creates middleware that serves the metadata of the resource (RFC 9728), and turns on the link to it in challenges. Mount it
 * at the root. Throws `TypeError` for invalid options.
 *
 * @example
 * app.use(createMetadata(resourceServer, { resource: 'https://api.example/', authorizationServers: ['https://idp.example/'] }));
 */
export function createMetadata(server: ResourceServer<RegisteredClaims>, options: MetadataOptions): MiddlewareHandler {
  const metadata = openMetadata(server, options);
  return async (c, next) => toMetadataResponse(metadata.answer(c.req.method, c.req.path)) ?? next();
}

/**
 * Creates middleware that receives logout tokens (OpenID Connect Back-Channel Logout 1.0) at `/backchannel-logout`. The server
 * needs `revocations`. Throws `TypeError` for invalid options.
 *
 * @example
 * app.use(createBackchannelLogout(resourceServer, { clientIds: ['app', 'spa'] }));
 */
export function createBackchannelLogout(
  server: ResourceServer<RegisteredClaims>,
  options: BackchannelLogoutOptions,
): MiddlewareHandler {
  const receive = events.createBackchannelLogout(server, options);
  return async (c, next) => receive(c.req.raw) ?? next();
}

/**
 * Creates middleware that receives security events (Shared Signals Framework 1.0) below `/shared-signals/`, and registers its
 * streams in the background. The server needs `revocations`. Throws `TypeError` for invalid options.
 */
export function createSignalsReceiver(
  server: ResourceServer<RegisteredClaims>,
  options: SignalsReceiverOptions,
): MiddlewareHandler & { close(): void } {
  const receive = events.createSignalsReceiver(server, options);
  const handle: MiddlewareHandler = async (c, next) => receive(c.req.raw) ?? next();
  return Object.assign(handle, { close: receive.close });
}

/** Returns the access of a request. Throws `TypeError` if the request was not authorized. */
export const accessOf: AccessReaders<JudgedContext>['accessOf'] = readAccess;

/** Like `accessOf`, but returns `undefined` without access. */
export const findAccess: AccessReaders<JudgedContext>['findAccess'] = findGrantedAccess;

const respondAsHono = (error: Parameters<ErrorHandler>[0], c: Pick<Context, 'text'>): Response => {
  if ('getResponse' in error) return error.getResponse();
  // biome-ignore lint/suspicious/noConsole: Hono itself logs an unhandled error in this way.
  console.error(error);
  return c.text('Internal Server Error', 500);
};

function describe<E extends Env>(options: ProtectOptions<E>, c: Context<E>): Visitor<Context<E>> {
  return { key: c, request: c.req.raw, connection: options.connection?.(c), original: c };
}
