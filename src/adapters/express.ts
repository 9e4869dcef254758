import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { Policy } from '../policy/policy.ts';
import type { Access, ResourceServer } from '../resource-server.ts';
import { checkRoute, checkServer, passGate } from './gate.ts';
import { sendRefusal, setNonce } from './node-answer.ts';
import { readNodeRequest } from './node-request.ts';

/** What the adapter may need to know of the application around it. */
export interface ProtectOptions {
  /** Told of every refusal, for logs and metrics. Default: nobody is. */
  readonly onRefused?: (error: unknown, request: Request) => void;
}

/** Answers a request that was let in. `P` are the parameters of the path. */
export type ProtectedHandler<P> = (
  request: Request<P>,
  response: Response,
  access: Access,
  next: NextFunction,
) => unknown;

/** Puts a policy before a handler. A handler that takes `Access` cannot be mounted without one. */
export type Protect = <P = Request['params']>(policy: Policy, handler: ProtectedHandler<P>) => RequestHandler<P>;

/**
 * Creates the `protect` function of an Express application. Refusals are answered here and never reach error handlers;
 * what a handler throws, or rejects with, does.
 *
 * @example
 * const protect = createProtect(resourceServer);
 * app.get('/messages', protect({ scopes: ['read:messages'] }, (req, res, access) => res.json(access.claims)));
 */
export function createProtect(server: ResourceServer, options: ProtectOptions = {}): Protect {
  checkServer('createProtect', server);
  return (policy, handler) => {
    checkRoute(policy, handler);
    return (req, res, next) =>
      passGate<unknown>(server, {
        // A router cuts its prefix off `url`; a proof is for the URL that the client called.
        request: readNodeRequest(req, req.originalUrl),
        policy,
        connection: req.socket,
        admit: (access) => {
          setNonce(access, res);
          return handler(req, res, access, next);
        },
        refuse: (refusal, error) => {
          // The parameters of the path are of no interest to whoever is told.
          options.onRefused?.(error, req as Request);
          sendRefusal(refusal, res);
        },
      });
  };
}
