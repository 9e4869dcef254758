import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Refusal } from '../core/refusal/refusal.ts';
import type { Access, ResourceServer } from '../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../core/token/claims.ts';
import { type AdapterOptions, type Checkpoint, createCheckpoint, type Visitor } from './checkpoint.ts';
import { type Metadata, type MetadataOptions, openMetadata } from './metadata.ts';
import { checkNodeHttp, readNodeRequest } from './node-request.ts';

/** Middleware as Express, connect and similar servers call it. Its types leave parameters and bodies unchanged. */
export type NodeMiddleware = (
  request: IncomingMessage & {
    /** URL before a router has removed its prefix. */
    readonly originalUrl?: string;
  },
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void;

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

/**
 * Sends a refusal as described: no framework adds a charset or an ETag. Headers set before, for example by CORS, remain.
 * Node omits the body if the method is HEAD. A response that the application has begun, for example after a time limit, remains.
 */
export function sendRefusal({ status, headers, body }: Omit<Refusal, 'reason'>, outgoing: ServerResponse): void {
  if (outgoing.headersSent) return;
  outgoing.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) });
  outgoing.end(body);
}

/** Sets the new nonce of an admitted request on its response (RFC 9449 §8.2). */
export function setNonce({ dpopNonce }: Access<unknown>, outgoing: ServerResponse): void {
  if (dpopNonce !== undefined && !outgoing.headersSent) outgoing.setHeader('dpop-nonce', dpopNonce);
}

/** Sets the headers of a refusal whose body another function may replace. */
export function setChallenge({ headers }: Refusal, outgoing: ServerResponse): void {
  if (outgoing.headersSent) return;
  for (const [name, value] of Object.entries(headers)) {
    if (name !== 'content-type') outgoing.setHeader(name, value);
  }
}
