import type { ServerResponse } from 'node:http';
import type { Refusal } from '../refusal/refusal.ts';
import type { Access } from '../resource-server/resource-server.ts';

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
