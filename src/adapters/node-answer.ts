import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Refusal } from '../refusal/refusal.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../token/claims.ts';
import { checkNodeHttp } from './admission.ts';
import { type Metadata, type MetadataOptions, openMetadata } from './metadata.ts';

/**
 * Sends a refusal as it is described: no framework adds a charset or an ETag. Headers that were set before, of CORS for
 * instance, stay. Node leaves out the body where the method is HEAD.
 */
export function sendRefusal({ status, headers, body }: Refusal, outgoing: ServerResponse): void {
  outgoing.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) });
  outgoing.end(body);
}

/** Puts the fresh nonce of an admitted request on the answer to come (RFC 9449 §8.2). */
export function setNonce({ dpopNonce }: Access<unknown>, outgoing: ServerResponse): void {
  if (dpopNonce !== undefined) outgoing.setHeader('dpop-nonce', dpopNonce);
}

/** Answers a request of `node:http`, or hands it on. */
export type NodeMiddleware = (
  request: IncomingMessage & { readonly originalUrl?: string },
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/** Serves the metadata of a resource server where requests are those of `node:http`, and turns on the link to it. */
export function createNodeMetadata(server: ResourceServer<RegisteredClaims>, options: MetadataOptions): NodeMiddleware {
  checkNodeHttp('createMetadata');
  return serveMetadata(openMetadata(server, options));
}

/** Serves metadata where requests are those of `node:http`; every other path goes on. */
export function serveMetadata(metadata: Metadata): NodeMiddleware {
  return (incoming, outgoing, next) => {
    const answer = metadata.answer(incoming.method, incoming.originalUrl ?? String(incoming.url));
    if (answer === undefined) return next();
    outgoing.writeHead(answer.status, { ...answer.headers }).end(answer.body ?? undefined);
  };
}
