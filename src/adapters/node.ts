import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { ResourceRequest } from '../http/request.ts';
import type { HandedClaims, Policy } from '../policy/policy.ts';
import type { ErrorBody, ErrorReport } from '../refusal/error-body.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';
import { checkNodeHttp, checkRoute } from './admission.ts';
import { findAccessOf, requireAccessOf } from './admitted.ts';
import { checkAdapterOptions, createCheckpoint, demand } from './checkpoint.ts';
import { type AccessReaders, createForms, createMiddlewareForms } from './forms.ts';
import type { MetadataOptions } from './metadata.ts';
import { createNodeMetadata } from './node-answer.ts';
import { readNodeRequest } from './node-request.ts';
import { passOn, passToHandler } from './node-visit.ts';

export type { MetadataOptions } from './metadata.ts';

/** What the adapter may need to know of the application around it. */
export interface ProtectOptions {
  /** Called for every refusal, for logs and metrics. Errors it throws, or rejects with, are ignored. */
  readonly onRefused?: (error: unknown, request: IncomingMessage) => unknown;
  /** Realm of the challenge for a request, such as the name of its tenant. Default: the audiences of the server. */
  readonly realm?: (request: IncomingMessage) => string | undefined;
  /** Makes the body of a refusal for a request, such as one with its id. Default: the form that the server has. */
  readonly errorBody?: (report: ErrorReport, request: IncomingMessage) => ErrorBody;
}

/** Answers a request that was let in; `C` are the claims that the policy gives. */
export type ProtectedHandler<C = Claims, A = Access<C>> = (
  request: IncomingMessage,
  response: ServerResponse,
  access: A,
) => unknown;

/**
 * Puts a policy before a handler. A handler that takes `Access` cannot be mounted without one. Throws `TypeError` for a
 * policy that cannot work.
 */
export interface Protect<D = Claims> {
  <C = D>(policy: Policy<C>, handler: ProtectedHandler<HandedClaims<C, D>>): RequestListener;
  /** The same for a route that is open as well: no `Authorization` and no `DPoP` → no access; all else is judged. */
  optional<C = D>(
    policy: Policy<C>,
    handler: ProtectedHandler<HandedClaims<C, D>, Access<HandedClaims<C, D>> | undefined>,
  ): RequestListener;
}

/** Middleware as connect and its kin call it. */
export type AuthorizeMiddleware = (
  request: IncomingMessage & { readonly originalUrl?: string },
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
 * Creates the `protect` function of a `node:http` server; what it returns is a request listener. If the handler returns a
 * promise, so does the listener.
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
  const checkpoint = open('createProtect', server, options);
  const forms = createForms((credentials) => <C>(policy: Policy<C>, handler: ProtectedHandler<C>): RequestListener => {
    checkRoute(policy, handler);
    const asked = demand(policy, credentials);
    return (incoming, outgoing) =>
      passToHandler(checkpoint, asked, {
        incoming,
        outgoing,
        // Absent only if credentials are optional, and then the handler is one that knows.
        handle: (access) => handler(incoming, outgoing, access as Access<C>),
      });
  });
  // The handler of `optional` has the type that the interface says.
  return forms as Protect<D>;
}

/**
 * Creates the `authorize` function for servers that call `next`, such as connect. What is behind it finds the access with
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
  const checkpoint = open('createAuthorize', server, options);
  return createMiddlewareForms(
    { accessOf, findAccess },
    (asked): AuthorizeMiddleware =>
      (incoming, outgoing, next) =>
        passOn(checkpoint, asked, { incoming, outgoing, target: incoming.originalUrl, next }),
  );
}

/**
 * Serves the metadata of the resource (RFC 9728), and lets challenges link to it. Mount it at the root. Throws `TypeError`
 * for options that cannot work.
 *
 * @example
 * const metadata = createMetadata(resourceServer, {
 *   resource: 'https://api.example/', authorizationServers: ['https://idp.example/'],
 * });
 * createServer((request, response) => {
 *   metadata(request, response, () => response.end('what is not the metadata'));
 * }).listen(3000);
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

/**
 * A request of `node:http` as `authorize` of a resource server reads it: for upgrades to WebSocket, socket.io, GraphQL
 * contexts, and other places that no adapter reaches. `target` is the path with its query as the client sent it, if a
 * framework has cut something off `incoming.url`.
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

function open(caller: string, server: ResourceServer<RegisteredClaims>, options: ProtectOptions) {
  checkNodeHttp(caller);
  checkAdapterOptions(caller, options, ['onRefused', 'realm', 'errorBody']);
  return createCheckpoint<IncomingMessage>(caller, server, options);
}
