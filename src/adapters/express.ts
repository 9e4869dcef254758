import type { IncomingMessage } from 'node:http';
import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from 'express';
import type { HandedClaims, Policy } from '../policy/policy.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';
import type { AdapterOptions } from './checkpoint.ts';
import { type AuthorizeForms, createWrapperForms, type Forms } from './forms.ts';
import {
  createNodeAuthorize,
  createNodeCheckpoint,
  describeNode,
  type NodeMiddleware,
  respondNode,
  sendRefusal,
} from './node-middleware.ts';

export type { RefusedRequest } from './checkpoint.ts';
export { createBackchannelLogout, createSignalsReceiver } from './events/node-events.ts';
export type { MetadataOptions } from './metadata.ts';
export { accessOf, createMetadata, findAccess } from './node-middleware.ts';

declare global {
  namespace Express {
    interface Request {
      /** The access that `authorize` of Portcullis granted; `undefined` if the request was not authorized. */
      access?: Access<RegisteredClaims>;
    }
  }
}

/** Options of the adapter. */
export type ProtectOptions = AdapterOptions<Request>;

/** Responds to an admitted request. `P` are the parameters of the path, `C` the claims that the policy provides. */
export type ProtectedHandler<P, C = Claims, A = Access<C>> = (
  request: Request<P>,
  response: Response,
  access: A,
  next: NextFunction,
) => unknown;

/** The wrapper for required credentials (`N` is `never`), or for optional ones (`N` is `undefined`). */
type ExpressWrapper<D, N> = <C = D, P = Request['params']>(
  policy: Policy<C>,
  handler: ProtectedHandler<P, HandedClaims<C, D>, Access<HandedClaims<C, D>> | N>,
) => RequestHandler<P>;

/** Wraps a handler in a policy. A handler that takes `Access` cannot be mounted without one. Throws `TypeError` for an invalid policy. */
export type Protect<D = Claims> = Forms<ExpressWrapper<D, never>, ExpressWrapper<D, undefined>>;

/** Middleware whose types leave the parameters and bodies of the route as Express infers them. */
export type AuthorizeMiddleware = NodeMiddleware;

/** Creates middleware from a policy; without one, any valid token is admitted. Throws `TypeError` for an invalid policy. */
export type Authorize<D = Claims> = AuthorizeForms<AuthorizeMiddleware, IncomingMessage, D>;

/**
 * Creates the `protect` function of an Express application. Refusals are sent here and never reach error handlers. Errors that a
 * handler throws, or rejects with, do, except an `AccessError`.
 *
 * @example
 * const protect = createProtect(resourceServer);
 * app.get('/messages', protect({ scopes: ['read:messages'] }, (req, res, access) => res.json(access.claims)));
 */
export function createProtect<D extends RegisteredClaims = Claims>(
  server: ResourceServer<D>,
  options: ProtectOptions = {},
): Protect<D> {
  const checkpoint = createNodeCheckpoint('createProtect', server, options);
  type Handler = ProtectedHandler<Request['params'], unknown, Access<unknown> | undefined>;
  return createWrapperForms(
    (route, handler: Handler): RequestHandler =>
      (incoming, outgoing, next) => {
        const handle = (access: Access<unknown> | undefined) => handler(incoming, outgoing, access, next);
        // A router removes its prefix from `url`; a proof is for the URL that the client requested.
        respondNode(checkpoint, route, { incoming, outgoing, target: incoming.originalUrl, handle })
          // As Express 5 does: `next` without an error would continue with the next route.
          .catch((error) => next(error || new Error('Rejected promise')));
      },
  );
}

/**
 * Creates the `authorize` function of an Express application: middleware for a route, a router or the entire application.
 * Handlers after it read the access with `accessOf(req)`.
 *
 * @example
 * const authorize = createAuthorize(resourceServer);
 * app.get('/messages/:id', authorize({ scopes: ['read:messages'] }), (req, res) => {
 *   res.json({ id: req.params.id, reader: accessOf(req).claims.sub });
 * });
 */
export function createAuthorize<D extends RegisteredClaims = Claims>(
  server: ResourceServer<D>,
  options: ProtectOptions = {},
): Authorize<D> {
  return createNodeAuthorize(server, options, (req, access) => Object.assign(req, { access }));
}

/**
 * Creates an error handler, to be mounted last: it responds to an `AccessError` that a handler has thrown with that refusal.
 * Every other error is passed on.
 *
 * @example
 * app.use(answerAccessErrors(resourceServer));
 */
export function answerAccessErrors(
  server: ResourceServer<RegisteredClaims>,
  options: ProtectOptions = {},
): ErrorRequestHandler {
  const checkpoint = createNodeCheckpoint('answerAccessErrors', server, options);
  return (error, req, res, next) => {
    const visitor = describeNode(req, req.originalUrl, req);
    const refusal = res.headersSent ? undefined : checkpoint.describeThrown(error, visitor);
    if (refusal === undefined) return next(error);
    sendRefusal(refusal, res);
  };
}
