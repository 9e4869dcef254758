import type { Context, Env } from 'hono';
import type { Connection } from '../http/request.ts';
import { checkPolicy } from '../policy/checked-policy.ts';
import type { Policy } from '../policy/policy.ts';
import type { Access, ResourceServer } from '../resource-server.ts';
import type { Claims } from '../token/claims.ts';

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
export type Protect<E extends Env> = <C = Claims>(
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
export function createProtect<E extends Env = Env>(
  server: ResourceServer,
  options: ProtectOptions<E> = {},
): Protect<E> {
  return (policy, handler) => {
    checkPolicy(policy);
    return (c) => respond(policy, handler, c);
  };

  function respond<C>(policy: Policy<C>, handler: ProtectedHandler<E, C>, c: Context<E>): Response | Promise<Response> {
    const connection = options.connection?.(c);
    const refuse = (error: unknown): Response => {
      options.onRefused?.(error, c);
      return server.refuse(error, c.req.raw, { policy, connection });
    };
    let access: Access<C> | Promise<Access<C>>;
    try {
      access = server.authorize(c.req.raw, policy, connection);
    } catch (error) {
      return refuse(error);
    }
    if (access instanceof Promise) return access.then((granted) => answer(c, handler, granted), refuse);
    return answer(c, handler, access);
  }
}

function answer<E extends Env, C>(
  c: Context<E>,
  handler: ProtectedHandler<E, C>,
  access: Access<C>,
): Response | Promise<Response> {
  const response = handler(c, access);
  const nonce = access.dpopNonce;
  if (nonce === undefined) return response;
  return response instanceof Promise ? response.then((settled) => addNonce(settled, nonce)) : addNonce(response, nonce);
}

function addNonce(response: Response, nonce: string): Response {
  response.headers.set('dpop-nonce', nonce);
  return response;
}
