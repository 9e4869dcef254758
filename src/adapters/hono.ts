import type { Context, Env, ErrorHandler, MiddlewareHandler } from 'hono';
import type { BlankInput } from 'hono/types';
import type { HandedClaims, Policy, Unmade } from '../core/policy/policy.ts';
import type { Access, ResourceServer } from '../core/resource-server/resource-server.ts';
import type { SignalsReceiverOptions } from '../core/revocation/signals/receiver.ts';
import type { Claims, RegisteredClaims } from '../core/token/claims.ts';
import type { AccessReaders } from './admission.ts';
import type { Visitor } from './checkpoint.ts';
import * as events from './events/web-events.ts';
import { createMiddlewareForms, type Fix, type Forms } from './forms.ts';
import { type MetadataOptions, openMetadata } from './metadata.ts';
import { createWebCheckpoint, toMetadataResponse, toResponse, type WebAdapterOptions } from './web-response.ts';

export type { RefusedRequest } from './checkpoint.ts';
export type { MetadataOptions } from './metadata.ts';

/** Options of the adapter. */
export type AuthorizeOptions<E extends Env> = WebAdapterOptions<Context<E>>;

/** Middleware that adds `c.var.access` and leaves the types of the route as Hono infers them. */
export type AuthorizeMiddleware<A> = MiddlewareHandler<
  {
    /** Variables of the context. */
    Variables: {
      /** The access that was granted. */
      access: A;
    };
  },
  string,
  BlankInput
>;

/** Creates middleware of Hono for required credentials (`N` is `never`), or for optional ones (`N` is `undefined`). */
type HonoMiddleware<D, N, F> = <C = D>(
  policy?: Policy<C>,
  uncalled?: Unmade<F>,
) => AuthorizeMiddleware<Access<HandedClaims<C, D>> | N>;

/** Creates middleware from a policy; without one, any valid token is admitted. Throws `TypeError` for an invalid policy. */
export type Authorize<D = Claims, F = Fix> = Forms<HonoMiddleware<D, never, F>, HonoMiddleware<D, undefined, F>> &
  AccessReaders<object, D>;

/**
 * Creates the `authorize` function of a Hono application: middleware for a route, a path or the entire application.
 * Handlers after it read the access in `c.var.access`, or from `authorize.accessOf(c)`.
 *
 * @example
 * const authorize = createAuthorize(resourceServer);
 * app.get('/messages/:id', authorize({ scopes: ['read:messages'] }), (c) =>
 *   c.json({ id: c.req.param('id'), reader: c.var.access.claims.sub }),
 * );
 */
export function createAuthorize<E extends Env = Env, D extends RegisteredClaims = Claims>(
  server: ResourceServer<D>,
  options: AuthorizeOptions<E> = {},
): Authorize<D> {
  const checkpoint = createWebCheckpoint('createAuthorize', server, options);
  const forms = createMiddlewareForms(server, (route) => async (context: Context, next: () => Promise<void>) => {
    const c = context as unknown as Context<E>; // the application states its variables
    const { access, refusal } = await checkpoint.pass(route, describe(options, c));
    if (refusal !== undefined) return toResponse(refusal);
    if (access !== undefined) context.set('access', access);
    await next();
    if (access?.dpopNonce !== undefined) context.header('dpop-nonce', access.dpopNonce);
    return undefined;
  });
  // The policy returned the claims. Without credentials `optional` sets no access; the interface states it.
  return forms as unknown as Authorize<D>;
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
  options: AuthorizeOptions<E> & {
    /** Handler of every other error. */
    readonly otherwise?: ErrorHandler<E>;
  } = {},
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
  options: events.WebLogoutOptions,
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
): MiddlewareHandler & Pick<events.ClosableWebReceiver, 'close'> {
  const receive = events.createSignalsReceiver(server, options);
  const handle: MiddlewareHandler = async (c, next) => receive(c.req.raw) ?? next();
  return Object.assign(handle, { close: receive.close });
}

const respondAsHono = (error: Parameters<ErrorHandler>[0], c: Pick<Context, 'text'>): Response => {
  if ('getResponse' in error) return error.getResponse();
  // biome-ignore lint/suspicious/noConsole: Hono itself logs an unhandled error in this way.
  console.error(error);
  return c.text('Internal Server Error', 500);
};

function describe<E extends Env>(options: AuthorizeOptions<E>, c: Context<E>): Visitor<Context<E>> {
  return { key: c, request: c.req.raw, connection: options.connection?.(c), original: c };
}
