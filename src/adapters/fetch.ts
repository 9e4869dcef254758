import type { Connection } from '../http/request.ts';
import { checkOptionMembers } from '../option-members.ts';
import type { Policy } from '../policy/policy.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';
import { admitOrRefuse, checkRoute, checkServer } from './admission.ts';
import { addNonce } from './nonce-header.ts';

/** What the adapter may need to know of the runtime around it. `rest` is what the runtime passes after the request. */
export interface ProtectOptions {
  /**
   * The transport under a request; needed for proxies that are trusted by address. Default: unknown, and the scheme is
   * that of the URL.
   */
  readonly connection?: (request: Request, ...rest: never[]) => Connection | undefined;
  /** Told of every refusal, for logs and metrics. Default: nobody is. */
  readonly onRefused?: (error: unknown, request: Request) => void;
}

/**
 * Answers a request that was let in. `rest` is what the runtime passes after the request: an environment, a context; `C`
 * are the claims that the policy gives.
 */
export type ProtectedHandler<R extends Request, Rest extends readonly unknown[], C = Claims> = (
  request: R,
  access: Access<C>,
  ...rest: Rest
) => Response | Promise<Response>;

/**
 * Puts a policy before a handler. A handler that takes `Access` cannot be mounted without one. Throws `TypeError` for a
 * policy that cannot work.
 */
export type Protect<D = Claims> = <R extends Request, Rest extends readonly unknown[], C = D>(
  policy: Policy<C>,
  handler: ProtectedHandler<R, Rest, NoInfer<C>>,
) => (request: R, ...rest: Rest) => Response | Promise<Response>;

/**
 * Creates the `protect` function for handlers from `Request` to `Response`: those of Bun, Deno, Cloudflare Workers, Next.js and
 * others. Nothing is awaited unless the resource server has to wait.
 *
 * @example
 * const protect = createProtect(resourceServer);
 * export const GET = protect({ scopes: ['read:messages'] }, (request, access) => Response.json(access.claims));
 */
export function createProtect<D extends RegisteredClaims = Claims>(
  server: ResourceServer<D>,
  options: ProtectOptions = {},
): Protect<D> {
  checkServer('createProtect', server);
  checkOptionMembers<ProtectOptions>('createProtect', options, { connection: true, onRefused: true });
  return (policy, handler) => {
    checkRoute(policy, handler);
    return (request, ...rest) =>
      admitOrRefuse(server, {
        request,
        policy,
        // Whoever writes the function knows what the runtime passes; here it is passed on unseen.
        connection: options.connection?.(request, ...(rest as readonly unknown[] as never[])),
        admit: (access) => addNonce(handler(request, access, ...rest), access),
        refuse: ({ status, headers, body }, error) => {
          options.onRefused?.(error, request);
          return new Response(body, { status, headers });
        },
      });
  };
}
