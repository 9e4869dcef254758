import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { ResourceRequest } from '../core/http/request.ts';
import type { HandedClaims, Policy } from '../core/policy/policy.ts';
import type { Access, ResourceServer } from '../core/resource-server/resource-server.ts';
import type { Claims, RegisteredClaims } from '../core/token/claims.ts';
import type { AdapterOptions } from './checkpoint.ts';
import { createWrapperForms, type Forms } from './forms.ts';
import { createNodeCheckpoint, describeNode, sendRefusal, setNonce } from './node-middleware.ts';
import { checkNodeHttp, readNodeRequest } from './node-request.ts';

export type { RefusedRequest } from './checkpoint.ts';
export { createBackchannelLogout, createSignalsReceiver } from './events/node-events.ts';
export type { MetadataOptions } from './metadata.ts';
export { createMetadata } from './node-middleware.ts';

/** Options of the adapter. */
export type ProtectOptions = AdapterOptions<IncomingMessage>;

/** Responds to an admitted request; `C` are the claims that the policy provides. */
export type ProtectedHandler<C = Claims, A = Access<C>> = (
  request: IncomingMessage,
  response: ServerResponse,
  access: A,
) => unknown;

/** The wrapper for required credentials (`N` is `never`), or for optional ones (`N` is `undefined`). */
type NodeWrapper<D, N> = <C = D>(
  policy: Policy<C>,
  handler: ProtectedHandler<HandedClaims<C, D>, Access<HandedClaims<C, D>> | N>,
) => RequestListener;

/** Wraps a handler in a policy. A handler that takes `Access` cannot be mounted without one. Throws `TypeError` for an invalid policy. */
export type Protect<D = Claims> = Forms<NodeWrapper<D, never>, NodeWrapper<D, undefined>>;

/**
 * Creates the `protect` function of a `node:http` server; it returns request listeners, whose promise settles with the handler.
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
  const checkpoint = createNodeCheckpoint('createProtect', server, options);
  type Handler = ProtectedHandler<unknown, Access<unknown> | undefined>;
  return createWrapperForms(
    (route, handler: Handler): RequestListener =>
      async (incoming, outgoing) => {
        const visitor = describeNode(incoming, undefined, incoming);
        const { access, refusal } = await checkpoint.pass(route, visitor);
        if (refusal !== undefined) return sendRefusal(refusal, outgoing);
        if (access !== undefined) setNonce(access, outgoing);
        try {
          await handler(incoming, outgoing, access);
        } catch (error) {
          const thrown = outgoing.headersSent ? undefined : checkpoint.describeThrown(error, visitor);
          if (thrown === undefined) throw error;
          sendRefusal(thrown, outgoing);
        }
      },
  );
}

/**
 * Converts a request of `node:http` for `authorize` of a resource server: for upgrades to WebSocket, socket.io, GraphQL
 * contexts, and other requests that no adapter receives. `target` is the path with its query as the client sent it, if a
 * framework has removed a prefix from `incoming.url`.
 *
 * @example
 * const server = createServer();
 * server.on('upgrade', async (incoming, socket) => {
 *   const access = await resourceServer.authorize(toResourceRequest(incoming), { scopes: ['chat'] }, incoming.socket);
 *   socket.end(access.scheme);
 * });
 */
export function toResourceRequest(incoming: IncomingMessage, target?: string): ResourceRequest {
  checkNodeHttp('toResourceRequest');
  return readNodeRequest(incoming, target);
}

/**
 * Like `toResourceRequest`, for upgrades of browsers, which cannot set `Authorization`: they offer the subprotocol `bearer`, and
 * the token as the next one. The server must select another subprotocol, never the token. A request that sends credentials
 * twice is refused.
 *
 * @example
 * // In the browser: new WebSocket('wss://api.example/chat', ['chat', 'bearer', token])
 * const server = createServer();
 * server.on('upgrade', async (incoming, socket) => {
 *   const access = await resourceServer.authorize(toUpgradeRequest(incoming), { scopes: ['chat'] }, incoming.socket);
 *   socket.end(access.scheme);
 * });
 */
export function toUpgradeRequest(incoming: IncomingMessage): ResourceRequest {
  const request = toResourceRequest(incoming);
  const { method, url, target, headers } = request;
  const offered =
    headers
      .get('sec-websocket-protocol')
      ?.split(',')
      .map((each) => each.trim()) ?? [];
  const tokens = offered.flatMap((each, index) => (each === 'bearer' ? [`Bearer ${offered[index + 1] ?? ''}`] : []));
  if (tokens.length === 0) return request;
  const authorization = [headers.get('authorization') ?? [], tokens].flat().join(', ');
  const get = (name: string) => (name.toLowerCase() === 'authorization' ? authorization : headers.get(name));
  return { method, url, target, headers: { get } };
}
