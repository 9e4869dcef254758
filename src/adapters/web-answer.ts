import { type MaybePromise, same, settle } from '../maybe-promise.ts';
import type { Refusal } from '../refusal/refusal.ts';
import type { Access } from '../resource-server/resource-server.ts';
import type { Checkpoint, Demand, Visit } from './checkpoint.ts';
import type { MetadataAnswer } from './metadata.ts';
import { addNonce } from './nonce-header.ts';

/** Lets a request in to a handler, or answers it, where answers are web-standard: the wrapper's form. */
export function passToWebHandler<Q, C>(
  checkpoint: Checkpoint<Q>,
  demand: Demand<C>,
  seen: Pick<Visit<Q, never, never>, 'key' | 'request' | 'connection' | 'told'>,
  handle: (access: Access<C> | undefined) => MaybePromise<Response>,
): MaybePromise<Response> {
  const answer = (error: unknown): Response => {
    const refusal = checkpoint.describeThrown(error, seen);
    if (refusal === undefined) throw error;
    return toResponse(refusal);
  };
  return checkpoint.pass<Response, C>(demand, {
    ...seen,
    admit: (access) => {
      const answered = settle(() => handle(access), same, answer);
      return access === undefined ? answered : addNonce(answered, access);
    },
    refuse: toResponse,
  });
}

/** A refusal where answers are web-standard. */
export function toResponse({ status, headers, body }: Refusal): Response {
  return new Response(body, { status, headers });
}

/** Metadata where answers are web-standard; every other path has no answer here. */
export function toMetadataResponse(answer: MetadataAnswer | undefined): Response | undefined {
  return answer === undefined ? undefined : new Response(answer.body, answer);
}
