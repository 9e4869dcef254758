import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { ResourceRequest } from '../http/request.ts';
import type { HandedClaims, Policy } from '../policy/policy.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';
import { checkNodeHttp } from './admission.ts';
import { findAccessOf, requireAccessOf } from './admitted.ts';
import { type AdapterOptions, readHandlerPolicy } from './checkpoint.ts';
import { type AccessReaders, type AuthorizeForms, createForms } from './forms.ts';
import { readNodeRequest } from './node-request.ts';
import type { NodeMiddleware } from './node-response.ts';
import { createNodeAuthorize, createNodeCheckpoint, passToHandler } from './node-visit.ts';

export type { RefusedRequest } from './checkpoint.ts';
export { createBackchannelLogout, createSignalsReceiver } from './events/node-events.ts';
export type { MetadataOptions } from './metadata.ts';
export { createMetadata } from './node-response.ts';

/** Options of the adapter. */
export type ProtectOptions = AdapterOptions<IncomingMessage>;

/** Responds to an admitted request; `C` are the claims that the policy provides. */
export type ProtectedHandler<C = Claims, A = Access<C>> = (
  request: IncomingMessage,
  response: ServerResponse,
  access: A,
) => unknown;

/** Wraps a handler in a policy. A handler that takes `Access` cannot be mounted without one. Throws `TypeError` for an invalid policy. */
export interface Protect<D = Claims> {
  <C = D>(policy: Policy<C>, handler: ProtectedHandler<HandedClaims<C, D>>): RequestListener;
  /** For routes that are also open: without `Authorization` and `DPoP` there is no access; every other request is validated. */
  optional<C = D>(
    policy: Policy<C>,
    handler: ProtectedHandler<HandedClaims<C, D>, Access<HandedClaims<C, D>> | undefined>,
  ): RequestListener;
}

/** Middleware as connect and similar servers call it. */
export type AuthorizeMiddleware = NodeMiddleware;

/** Creates middleware from a policy; without one, any valid token is admitted. Throws `TypeError` for an invalid policy. */
export type Authorize<D = Claims> = AuthorizeForms<AuthorizeMiddleware, IncomingMessage, D>;

/**
 * Creates the `protect` function of a `node:http` server; it returns request listeners. If the handler returns a promise, the
 * listener does too.
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
  const forms = createForms((credentials) => <C>(policy: Policy<C>, handler: ProtectedHandler<C>): RequestListener => {
    const route = readHandlerPolicy(policy, credentials, handler);
    return (incoming, outgoing) =>
      passToHandler(checkpoint, route, {
        incoming,
        outgoing,
        // Absent only if credentials are optional, and the handler of that form accepts it.
        handle: (access) => handler(incoming, outgoing, access as Access<C>),
      });
  });
  // The interface states the type of the handler of `optional`.
  return forms as Protect<D>;
}

/**
 * Creates the `authorize` function for servers that call `next`, such as connect. Handlers after it read the access with
 * `accessOf(request)`.
 *
 * @example
 * const authorize = createAuthorize(resourceServer)({ scopes: ['read:messages'] });
 * createServer((request, response) => {
 *   authorize(request, response, () => response.end(accessOf(request).claims.sub));
 * }).listen(3000);
 */
export function createAuthorize<D extends RegisteredClaims = Claims>(
  server: ResourceServer<D>,
  options: ProtectOptions = {},
): Authorize<D> {
  return createNodeAuthorize(server, options);
}

/** Returns the access of a request. Throws `TypeError` if the request was not authorized. */
export const accessOf: AccessReaders<IncomingMessage>['accessOf'] = requireAccessOf;

/** Like `accessOf`, but returns `undefined` without access. */
export const findAccess: AccessReaders<IncomingMessage>['findAccess'] = findAccessOf;

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
