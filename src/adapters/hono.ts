import type { Context, Env } from 'hono';
import type { Connection } from '../http/request.ts';
import { checkOptionMembers } from '../option-members.ts';
import type { Policy } from '../policy/policy.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';
import { admitOrRefuse, checkRoute, checkServer } from './admission.ts';
import { addNonce } from './nonce-header.ts';

/** What the adapter may need to know of the application around it. */
export interface ProtectOptions<E extends Env> {
  /** The transport under a request; needed for proxies that are trusted by address. */
  readonly connection?: (c: Context<E>) => Connection | undefined;
  /** Told of every refusal, for logs and metrics. */
  readonly onRefused?: (error: unknown, c: Context<E>) => void;
}

/** Answers a request that was let in; `C` are the claims that the policy gives. */
export type ProtectedHandler<E extends Env, C = Claims> = (
  c: Context<E>,
  access: Access<C>,
) => Response | Promise<Response>;

/**
 * Puts a policy before a handler. A handler that takes `Access` cannot be mounted without one. Throws `TypeError` for a
 * policy that cannot work.
 */
export type Protect<E extends Env, D = Claims> = <C = D>(
  policy: Policy<C>,
  handler: ProtectedHandler<E, NoInfer<C>>,
) => (c: Context<E>) => Response | Promise<Response>;

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
  checkServer('createProtect', server);
  checkOptionMembers<ProtectOptions<E>>('createProtect', options, { connection: true, onRefused: true });
  return (policy, handler) => {
    checkRoute(policy, handler);
    return (c) =>
      admitOrRefuse(server, {
        request: c.req.raw,
        policy,
        connection: options.connection?.(c),
        admit: (access) => addNonce(handler(c, access), access),
        refuse: ({ status, headers, body }, error) => {
          options.onRefused?.(error, c);
          return new Response(body, { status, headers });
        },
      });
  };
}
