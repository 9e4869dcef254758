import type { Connection } from '../core/http/request.ts';
import type { Refusal } from '../core/refusal/refusal.ts';
import type { ResourceServer } from '../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../core/token/claims.ts';
import { type AdapterOptions, type Checkpoint, createCheckpoint } from './checkpoint.ts';
import type { MetadataAnswer } from './metadata.ts';

/** Options of adapters whose requests do not contain their connection. `Rest` is what the runtime passes after the request. */
export interface WebAdapterOptions<Q, Rest extends readonly unknown[] = []> extends AdapterOptions<Q> {
  /** Transport of a request; needed for proxies trusted by address. Default: unknown, with the scheme of the URL. */
  readonly connection?: ((request: Q, ...rest: Rest) => Connection | undefined) | undefined;
}

/** Creates the checkpoint of an adapter with {@link WebAdapterOptions}. Throws `TypeError` for invalid options. */
export function createWebCheckpoint<Q>(
  caller: string,
  server: ResourceServer<RegisteredClaims>,
  options: AdapterOptions<Q>,
  more: readonly string[] = [],
): Checkpoint<Q> {
  return createCheckpoint(caller, server, { options, more: ['connection', ...more] });
}

export function toResponse({ status, headers, body }: Refusal): Response {
  return new Response(body, { status, headers });
}

export function toMetadataResponse(answer: MetadataAnswer | undefined): Response | undefined {
  return answer === undefined ? undefined : new Response(answer.body, answer);
}
