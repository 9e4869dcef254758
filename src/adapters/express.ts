import type { IncomingMessage } from 'node:http';
import type { ErrorRequestHandler, Request } from 'express';
import type { Access, ResourceServer } from '../core/resource-server/resource-server.ts';
import type { Claims, RegisteredClaims } from '../core/token/claims.ts';
import type { AdapterOptions } from './checkpoint.ts';
import { type AuthorizeForms, createMiddlewareForms, type Fix } from './forms.ts';
import { createNodeCheckpoint, describeNode, type NodeMiddleware, sendRefusal, setNonce } from './node-middleware.ts';

export type { RefusedRequest } from './checkpoint.ts';
export { createBackchannelLogout, createSignalsReceiver } from './events/node-events.ts';
export type { MetadataOptions } from './metadata.ts';
export { createMetadata } from './node-middleware.ts';

declare global {
  namespace Express {
    interface Request {
      /** The access that `authorize` of Portcullis granted; `undefined` if the request was not authorized. */
      access?: Access<RegisteredClaims>;
    }
  }
}

/** Options of the adapter. */
export type AuthorizeOptions = AdapterOptions<Request>;

/** Middleware whose types leave the parameters and bodies of the route as Express infers them. */
export type AuthorizeMiddleware = NodeMiddleware;

/** Creates middleware from a policy; without one, any valid token is admitted. Throws `TypeError` for an invalid policy. */
export type Authorize<D = Claims, F = Fix> = AuthorizeForms<AuthorizeMiddleware, IncomingMessage, D, F>;

/**
 * Creates the `authorize` function of an Express application: middleware for a route, a router or the entire application.
 * Handlers after it read the access in `req.access`, or with the types of the claims from `authorize.accessOf(req)`. Refusals are
 * sent here and never reach error handlers.
 *
 * @example
 * const authorize = createAuthorize(resourceServer);
 * app.get('/messages/:id', authorize({ scopes: ['read:messages'] }), (req, res) => {
 *   res.json({ id: req.params.id, reader: authorize.accessOf(req).claims.sub });
 * });
 */
export function createAuthorize<D extends RegisteredClaims = Claims>(
  server: ResourceServer<D>,
  options: AuthorizeOptions = {},
): Authorize<D> {
  const checkpoint = createNodeCheckpoint('createAuthorize', server, options);
  return createMiddlewareForms(
    server,
    (route): AuthorizeMiddleware =>
      (incoming, outgoing, next) => {
        // Awaited without it, the middleware could not keep the code after it from running.
        if (typeof next !== 'function') throw new TypeError('authorize: pass next, as in authorize()(req, res, next)');
        const admit = async (): Promise<boolean> => {
          // Express calls with its own request. A router removes its prefix from `url`; a proof is for the URL of the client.
          const visitor = describeNode(incoming, incoming.originalUrl, incoming as unknown as Request);
          const { access, refusal } = await checkpoint.pass(route, visitor);
          if (refusal !== undefined) sendRefusal(refusal, outgoing);
          if (access !== undefined) {
            setNonce(access, outgoing);
            Object.assign(incoming, { access });
          }
          return refusal === undefined;
        };
        // `next` is called outside: an error that it throws must not call it again.
        void admit().then((isAdmitted) => isAdmitted && next(), next);
      },
  );
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
  options: AuthorizeOptions = {},
): ErrorRequestHandler {
  const checkpoint = createNodeCheckpoint('answerAccessErrors', server, options);
  return (error, req, res, next) => {
    const visitor = describeNode(req, req.originalUrl, req);
    const refusal = res.headersSent ? undefined : checkpoint.describeThrown(error, visitor);
    if (refusal === undefined) return next(error);
    sendRefusal(refusal, res);
  };
}
