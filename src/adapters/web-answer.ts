import type { Refusal } from '../refusal/refusal.ts';
import type { MetadataAnswer } from './metadata.ts';

/** A refusal where answers are web-standard. */
export function toResponse({ status, headers, body }: Refusal): Response {
  return new Response(body, { status, headers });
}

/** Metadata where answers are web-standard; every other path has no answer here. */
export function toMetadataResponse(answer: MetadataAnswer | undefined): Response | undefined {
  return answer === undefined ? undefined : new Response(answer.body, answer);
}
