import type { Refusal } from '../refusal/refusal.ts';

/** A refusal where answers are web-standard. */
export function toResponse({ status, headers, body }: Refusal): Response {
  return new Response(body, { status, headers });
}
