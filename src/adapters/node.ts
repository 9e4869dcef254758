import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
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
  readonly onRefused?: (error: unknown, request: IncomingMessage) => void;
}

/** Answers a request that was let in; `C` are the claims that the policy gives. */
export type ProtectedHandler<C = Claims> = (
  request: IncomingMessage,
  response: ServerResponse,
  access: Access<C>,
) => unknown;

/**
 * Puts a policy before a handler. A handler that takes `Access` cannot be mounted without one. Throws `TypeError` for a
 * policy that cannot work.
 */
export type Protect<D = Claims> = <C = D>(policy: Policy<C>, handler: ProtectedHandler<NoInfer<C>>) => RequestListener;

/**
 * Creates the `protect` function of a `node:http` server; what it returns is a request listener. Where the handler
 * returns a promise, so does the listener.
 *
 * @example
 * const protect = createProtect(resourceServer);
 * const messages = protect({ scopes: ['read:messages'] }, (request, response, access) => {
 *   response.end(JSON.stringify(access.claims));
 * });
 * createServer(messages).listen(3000);
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
    return (incoming, outgoing) =>
      admitOrRefuse(server, {
        request: readNodeRequest(incoming),
        policy,
        connection: incoming.socket,
        admit: (access): unknown => {
          setNonce(access, outgoing);
          return handler(incoming, outgoing, access);
        },
        refuse: (refusal, error): unknown => {
          options.onRefused?.(error, incoming);
          return sendRefusal(refusal, outgoing);
        },
      });
  };
}
