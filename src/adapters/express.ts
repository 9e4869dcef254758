import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from 'express';
import type { HandedClaims, Policy } from '../policy/policy.ts';
import type { ErrorBody, ErrorReport } from '../refusal/error-body.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';
import { checkNodeHttp, checkRoute } from './admission.ts';
import { findAccessOf, requireAccessOf } from './admitted.ts';
import { checkAdapterOptions, createCheckpoint, demand } from './checkpoint.ts';
import { type AccessReaders, createForms, createMiddlewareForms } from './forms.ts';
import type { MetadataOptions } from './metadata.ts';
import { createNodeMetadata, sendRefusal } from './node-answer.ts';
import { readNodeRequest } from './node-request.ts';
import { passOn, passToHandler } from './node-visit.ts';

export type { MetadataOptions } from './metadata.ts';

declare global {
  namespace Express {
    interface Request {
      /** What `authorize` or `protect` of Portcullis has let in; `undefined` if nobody has judged the request. */
      access?: Access<RegisteredClaims>;
    }
  }
}

/** What the adapter may need to know of the application around it. */
export interface ProtectOptions {
  /** Called for every refusal, for logs and metrics. Errors it throws, or rejects with, are ignored. */
  readonly onRefused?: (error: unknown, request: Request) => unknown;
  /** Realm of the challenge for a request, such as the name of its tenant. Default: the audiences of the server. */
  readonly realm?: (request: Request) => string | undefined;
  /** Makes the body of a refusal for a request, such as one with its id. Default: the form that the server has. */
  readonly errorBody?: (report: ErrorReport, request: Request) => ErrorBody;
}

/** Answers a request that was let in. `P` are the parameters of the path, `C` the claims that the policy gives. */
export type ProtectedHandler<P, C = Claims, A = Access<C>> = (
  request: Request<P>,
  response: Response,
  access: A,
  next: NextFunction,
) => unknown;

/**
 * Puts a policy before a handler. A handler that takes `Access` cannot be mounted without one. Throws `TypeError` for a
 * policy that cannot work.
 */
export interface Protect<D = Claims> {
  <C = D, P = Request['params']>(
    policy: Policy<C>,
    handler: ProtectedHandler<P, HandedClaims<C, D>>,
  ): RequestHandler<P>;
  /** The same for a route that is open as well: no `Authorization` and no `DPoP` → no access; all else is judged. */
  optional<C = D, P = Request['params']>(
    policy: Policy<C>,
    handler: ProtectedHandler<P, HandedClaims<C, D>, Access<HandedClaims<C, D>> | undefined>,
  ): RequestHandler<P>;
}

/** Middleware whose types leave the parameters and bodies of the route as Express finds them. */
export type AuthorizeMiddleware = (
  request: IncomingMessage & { readonly originalUrl: string },
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/** Makes middleware of a policy; without one any valid token will do. Throws `TypeError` for a policy that cannot work. */
export interface Authorize<D = Claims> extends AccessReaders<IncomingMessage, D> {
  (policy?: Policy<unknown>): AuthorizeMiddleware;
  /** The same for routes that are open as well: no `Authorization` and no `DPoP` → no access; all else is judged. */
  optional(policy?: Policy<unknown>): AuthorizeMiddleware;
}

/**
 * Creates the `protect` function of an Express application. Refusals are answered here and never reach error handlers;
 * what a handler throws, or rejects with, does, unless it is an `AccessError`.
 *
 * @example
 * const protect = createProtect(resourceServer);
 * app.get('/messages', protect({ scopes: ['read:messages'] }, (req, res, access) => res.json(access.claims)));
 */
export function createProtect<D extends RegisteredClaims = Claims>(
  server: ResourceServer<D>,
  options: ProtectOptions = {},
): Protect<D> {
  const checkpoint = open('createProtect', server, options);
  const forms = createForms(
    (credentials) =>
      <C, P>(policy: Policy<C>, handler: ProtectedHandler<P, C>): RequestHandler<P> => {
        checkRoute(policy, handler);
        const asked = demand(policy, credentials);
        return (req, res, next) => {
          const passed = passToHandler(checkpoint, asked, {
            // The parameters of the path are of no interest to whoever is told.
            incoming: req as Request,
            outgoing: res,
            // A router cuts its prefix off `url`; a proof is for the URL that the client called.
            target: req.originalUrl,
            // Absent only if credentials are optional, and then the handler is one that knows.
            handle: (access) => handler(req, res, access as Access<C>, next),
          });
          // Express 4 looks at no promise. As Express 5 does: `next` without an error would go on to the next route.
          if (passed instanceof Promise) passed.catch((error) => next(error || new Error('Rejected promise')));
        };
      },
  );
  // The handler of `optional` has the type that the interface says.
  return forms as Protect<D>;
}

/**
 * Creates the `authorize` function of an Express application: middleware for a route, a router or the whole application.
 * Handlers behind it find the access with `accessOf(req)`.
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
  const checkpoint = open('createAuthorize', server, options);
  return createMiddlewareForms(
    { accessOf, findAccess },
    (asked): AuthorizeMiddleware =>
      (req, res, next) =>
        passOn(checkpoint, asked, {
          incoming: req as Request, // Express calls with nothing else
          outgoing: res,
          target: req.originalUrl,
          next,
          admitted: (access) => {
            Object.assign(req, { access });
          },
        }),
  );
}

/**
 * Creates an error handler, to be mounted last: an `AccessError` that a handler has thrown is answered as that refusal.
 * Every other error is passed on.
 *
 * @example
 * app.use(answerAccessErrors(resourceServer));
 */
export function answerAccessErrors(
  server: ResourceServer<RegisteredClaims>,
  options: ProtectOptions = {},
): ErrorRequestHandler {
  const checkpoint = open('answerAccessErrors', server, options);
  return (error, req, res, next) => {
    const request = readNodeRequest(req, req.originalUrl);
    const seen = { key: req, request, connection: req.socket, told: req };
    const refusal = res.headersSent ? undefined : checkpoint.describeThrown(error, seen);
    if (refusal === undefined) return next(error);
    sendRefusal(refusal, res);
  };
}

/**
 * Serves the metadata of the resource (RFC 9728), and lets challenges link to it. Mount it at the root. Throws `TypeError`
 * for options that cannot work.
 *
 * @example
 * app.use(createMetadata(resourceServer, { resource: 'https://api.example/', authorizationServers: ['https://idp.example/'] }));
 */
export function createMetadata(
  server: ResourceServer<RegisteredClaims>,
  options: MetadataOptions,
): AuthorizeMiddleware {
  return createNodeMetadata(server, options);
}

/** What a request that was let in may do, with the claims that the policy gives. `TypeError` if nobody has let it in. */
export function accessOf<C = RegisteredClaims>(
  request: IncomingMessage,
  policy?: Policy<C>,
): Access<HandedClaims<C, RegisteredClaims>> {
  return requireAccessOf(request, policy);
}

/** The same; `undefined` if nobody has let it in. */
export function findAccess<C = RegisteredClaims>(
  request: IncomingMessage,
  policy?: Policy<C>,
): Access<HandedClaims<C, RegisteredClaims>> | undefined {
  return findAccessOf(request, policy);
}

function open(caller: string, server: ResourceServer<RegisteredClaims>, options: ProtectOptions) {
  checkNodeHttp(caller);
  checkAdapterOptions(caller, options, ['onRefused', 'realm', 'errorBody']);
  return createCheckpoint<Request>(caller, server, options);
}
