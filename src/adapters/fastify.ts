import type { FastifyInstance, FastifyReply, FastifyRequest, RouteGenericInterface } from 'fastify';
import { settle } from '../maybe-promise.ts';
import type { Policy } from '../policy/policy.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { Claims } from '../token/claims.ts';
import { admitOrRefuse, checkNodeHttp, checkRoute, checkServer } from './admission.ts';
import { readNodeRequest } from './node-request.ts';

/** What the adapter may need to know of the application around it. */
export interface ProtectOptions {
  /** Told of every refusal, for logs and metrics. Default: nobody is. */
  readonly onRefused?: (error: unknown, request: FastifyRequest) => void;
}

type Req<R extends RouteGenericInterface> = FastifyRequest<R>;
type Rep<R extends RouteGenericInterface> = FastifyReply<R>;

/**
 * Answers a request that was let in. `R` has the types of the route: `Params`, `Querystring`, `Body`; `C` are the claims
 * that the policy gives.
 */
export type ProtectedHandler<R extends RouteGenericInterface, C = Claims> = (
  this: FastifyInstance,
  request: Req<R>,
  reply: Rep<R>,
  access: Access<C>,
) => unknown;

/** The two options of a route that belong together: the hook judges, before a body is read, and the handler answers. */
export interface ProtectedRoute<R extends RouteGenericInterface> {
  readonly onRequest: (this: FastifyInstance, request: Req<R>, reply: Rep<R>, done: (error?: Error) => void) => void;
  readonly handler: (this: FastifyInstance, request: Req<R>, reply: Rep<R>) => unknown;
}

/**
 * Puts a policy before a handler. A handler that takes `Access` cannot be mounted without one. Throws `TypeError` for a
 * policy that cannot work.
 */
export type Protect = <C = Claims, R extends RouteGenericInterface = RouteGenericInterface>(
  policy: Policy<C>,
  handler: ProtectedHandler<R, NoInfer<C>>,
) => ProtectedRoute<R>;

/**
 * Creates the `protect` function of a Fastify application. What it returns are the options of a route; more of them
 * may stand beside: `{ schema, ...protect(policy, handler) }`.
 *
 * @example
 * const protect = createProtect(resourceServer);
 * app.get('/messages', protect({ scopes: ['read:messages'] }, async (request, reply, access) => access.claims));
 */
export function createProtect(server: ResourceServer, options: ProtectOptions = {}): Protect {
  checkNodeHttp('createProtect');
  checkServer('createProtect', server);
  return <C, R extends RouteGenericInterface>(
    policy: Policy<C>,
    handler: ProtectedHandler<R, NoInfer<C>>,
  ): ProtectedRoute<R> => {
    checkRoute(policy, handler);
    const admitted = new WeakMap<object, Access<C>>();
    return {
      onRequest(request, reply, done) {
        const judge = () =>
          admitOrRefuse(server, {
            request: readNodeRequest(request.raw, request.originalUrl),
            policy,
            connection: request.raw.socket,
            admit: (access): void => {
              admitted.set(request, access);
              if (access.dpopNonce !== undefined) reply.header('dpop-nonce', access.dpopNonce);
              done();
            },
            refuse: ({ status, headers, body }, error): void => {
              // The types that a route has for its own requests and answers do not matter here.
              options.onRefused?.(error, request as FastifyRequest);
              // Bytes: to the type of a text Fastify would add a charset.
              (reply as FastifyReply).code(status).headers(headers).send(Buffer.from(body));
            },
          });
        void settle(
          judge,
          () => undefined,
          (error) => done(error as Error), // as it was thrown
        );
      },
      handler(request, reply) {
        const access = admitted.get(request);
        if (access === undefined) {
          throw new TypeError('protect: the route has lost its onRequest hook; spread protect(…) after other options');
        }
        return handler.call(this, request, reply, access);
      },
    };
  };
}
