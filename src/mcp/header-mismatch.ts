import type { Refusal } from '../refusal/refusal.ts';
import type { ReadMessage } from './node-message.ts';

const headerMismatch = -32_020;

/** Returns the refusal with an error of JSON-RPC if the headers differ from the body; every other refusal stays unchanged. */
export function describeMismatch(refusal: Refusal, message: ReadMessage | undefined): Refusal {
  if (refusal.reason !== 'mcp_header_mismatch') return refusal;
  const error = { code: headerMismatch, message: 'Header mismatch' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: message?.id ?? null, error });
  return { ...refusal, headers: { ...refusal.headers, 'content-type': 'application/json' }, body };
}
