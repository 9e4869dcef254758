import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { checkOptionMembers } from '../option-members.ts';
import type { Policy } from '../policy/policy.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';
import { admitOrRefuse, checkNodeHttp, checkRoute, checkServer } from './admission.ts';
import { sendRefusal, setNonce } from './node-answer.ts';
import { readNodeRequest } from './node-request.ts';

/** What the adapter may need to know of the application around it. */
export interface ProtectOptions {
  /** Told of every refusal, for logs and metrics. Default: nobody is. */
  readonly onRefused?: (error: unknown, request: Request) => void;
}

/** Answers a request that was let in. `P` are the parameters of the path, `C` the claims that the policy gives. */
export type ProtectedHandler<P, C = Claims> = (
  request: Request<P>,
  response: Response,
  access: Access<C>,
  next: NextFunction,
) => unknown;

/**
 * Puts a policy before a handler. A handler that takes `Access` cannot be mounted without one. Throws `TypeError` for a
 * policy that cannot work.
 */
export type Protect<D = Claims> = <C = D, P = Request['params']>(
  policy: Policy<C>,
  handler: ProtectedHandler<P, NoInfer<C>>,
) => RequestHandler<P>;

/**
 * Creates the `protect` function of an Express application. Refusals are answered here and never reach error handlers;
 * what a handler throws, or rejects with, does.
 *
 * @example
 * const protect = createProtect(resourceServer);
 * app.get('/messages', protect({ scopes: ['read:messages'] }, (req, res, access) => res.json(access.claims)));
 */
export function createProtect<D extends RegisteredClaims = Claims>(
  server: ResourceServer<D>,
  options: ProtectOptions = {},
): Protect<D> {
  checkNodeHttp('createProtect');
  checkServer('createProtect', server);
  checkOptionMembers<ProtectOptions>('createProtect', options, { onRefused: true });
  return (policy, handler) => {
    checkRoute(policy, handler);
    return (req, res, next) =>
      admitOrRefuse(server, {
        // A router cuts its prefix off `url`; a proof is for the URL that the client called.
        request: readNodeRequest(req, req.originalUrl),
        policy,
        connection: req.socket,
        admit: (access): unknown => {
          setNonce(access, res);
          return handler(req, res, access, next);
        },
        refuse: (refusal, error): unknown => {
          // The parameters of the path are of no interest to whoever is told.
          options.onRefused?.(error, req as Request);
          return sendRefusal(refusal, res);
        },
      });
  };
}
