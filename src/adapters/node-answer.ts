import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Refusal } from '../refusal/refusal.ts';
import type { Access } from '../resource-server/resource-server.ts';
import type { Metadata } from './metadata.ts';

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

/** Serves metadata where requests are those of `node:http`; every other path goes on. */
export function serveMetadata(
  metadata: Metadata,
  incoming: IncomingMessage & { readonly originalUrl?: string },
  outgoing: ServerResponse,
): 'answered' | 'not ours' {
  const answer = metadata.answer(incoming.method, incoming.originalUrl ?? String(incoming.url));
  if (answer === undefined) return 'not ours';
  outgoing.writeHead(answer.status, { ...answer.headers }).end(answer.body ?? undefined);
  return 'answered';
}
