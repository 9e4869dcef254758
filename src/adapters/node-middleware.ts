import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Refusal } from '../refusal/refusal.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../token/claims.ts';
import { type AccessReaders, findAccess as findGrantedAccess, accessOf as readAccess } from './admission.ts';
import { type AdapterOptions, type Checkpoint, createCheckpoint, type Visitor } from './checkpoint.ts';
import { type AuthorizeForms, createMiddlewareForms, type RoutePolicy } from './forms.ts';
import { type Metadata, type MetadataOptions, openMetadata } from './metadata.ts';
import { checkNodeHttp, readNodeRequest } from './node-request.ts';

/** Middleware as Express, connect and similar servers call it. Its types leave parameters and bodies unchanged. */
export type NodeMiddleware = (
  request: IncomingMessage & { readonly originalUrl?: string },
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/** Returns the access of a request. Throws `TypeError` if the request was not authorized. */
export const accessOf: AccessReaders<IncomingMessage>['accessOf'] = readAccess;

/** Like `accessOf`, but returns `undefined` without access. */
export const findAccess: AccessReaders<IncomingMessage>['findAccess'] = findGrantedAccess;

/**
 * Creates middleware that serves the metadata of the resource (RFC 9728), and turns on the link to it in challenges. Mount it
 * at the root. Throws `TypeError` for invalid options.
 *
 * @example
 * app.use(createMetadata(resourceServer, { resource: 'https://api.example/', authorizationServers: ['https://idp.example/'] }));
 */
export function createMetadata(server: ResourceServer<RegisteredClaims>, options: MetadataOptions): NodeMiddleware {
  checkNodeHttp('createMetadata');
  return serveMetadata(openMetadata(server, options));
}

/** Serves metadata; requests for other paths are passed to `next`. */
export function serveMetadata(metadata: Metadata): NodeMiddleware {
  return (incoming, outgoing, next) => {
    const response = metadata.answer(incoming.method, incoming.originalUrl ?? String(incoming.url));
    if (response === undefined) return next();
    outgoing.writeHead(response.status, { ...response.headers }).end(response.body ?? undefined);
  };
}

/** Creates the checkpoint of an adapter for `node:http`. Throws `TypeError` for invalid options. */
export function createNodeCheckpoint<Q>(
  caller: string,
  server: ResourceServer<RegisteredClaims>,
  options: AdapterOptions<Q>,
  more?: readonly string[],
): Checkpoint<Q> {
  checkNodeHttp(caller);
  return createCheckpoint(caller, server, { options, more });
}

export function describeNode<Q>(incoming: IncomingMessage, target: string | undefined, original: Q): Visitor<Q> {
  return { key: incoming, request: readNodeRequest(incoming, target), connection: incoming.socket, original };
}

/** Calls the handler of an admitted request, or sends the refusal: the wrapper form for `node:http`. */
export async function respondNode<Q extends IncomingMessage>(
  checkpoint: Checkpoint<Q>,
  route: RoutePolicy<unknown>,
  visit: {
    readonly incoming: Q;
    readonly outgoing: ServerResponse;
    /** Request target, if a framework has removed a prefix from `incoming.url`. */
    readonly target?: string | undefined;
    readonly handle: (access: Access<unknown> | undefined) => unknown;
  },
): Promise<void> {
  const { incoming, outgoing, handle } = visit;
  const visitor = describeNode(incoming, visit.target, incoming);
  const { access, refusal } = await checkpoint.pass(route, visitor);
  if (refusal !== undefined) return sendRefusal(refusal, outgoing);
  if (access !== undefined) setNonce(access, outgoing);
  try {
    const handled = handle(access);
    if (handled instanceof Promise) await handled;
  } catch (error) {
    const thrown = outgoing.headersSent ? undefined : checkpoint.describeThrown(error, visitor);
    if (thrown === undefined) throw error;
    sendRefusal(thrown, outgoing);
  }
}

/** Creates the middleware form for `node:http`. `admitted` is called with the access before `next`. */
export function createNodeAuthorize<Q extends IncomingMessage, D>(
  server: ResourceServer<RegisteredClaims>,
  options: AdapterOptions<Q>,
  admitted?: (incoming: IncomingMessage, access: Access<unknown>) => void,
): AuthorizeForms<NodeMiddleware, IncomingMessage, D> {
  const checkpoint = createNodeCheckpoint('createAuthorize', server, options);
  return createMiddlewareForms(
    (route): NodeMiddleware =>
      (incoming, outgoing, next) => {
        const admit = async (): Promise<boolean> => {
          // The framework calls with its own request.
          const visitor = describeNode(incoming, incoming.originalUrl, incoming as unknown as Q);
          const { access, refusal } = await checkpoint.pass(route, visitor);
          if (refusal !== undefined) sendRefusal(refusal, outgoing);
          if (access !== undefined) {
            setNonce(access, outgoing);
            admitted?.(incoming, access);
          }
          return refusal === undefined;
        };
        // `next` is called outside: an error that it throws must not call it again.
        void admit().then((isAdmitted) => isAdmitted && next(), next);
      },
  );
}

/**
 * Sends a refusal as described: no framework adds a charset or an ETag. Headers set before, for example by CORS, remain.
 * Node omits the body if the method is HEAD.
 */
export function sendRefusal({ status, headers, body }: Refusal, outgoing: ServerResponse): void {
  outgoing.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) });
  outgoing.end(body);
}

/** Sets the new nonce of an admitted request on its response (RFC 9449 §8.2). */
export function setNonce({ dpopNonce }: Access<unknown>, outgoing: ServerResponse): void {
  if (dpopNonce !== undefined) outgoing.setHeader('dpop-nonce', dpopNonce);
}
