import type { IncomingMessage } from 'node:http';
import { onBun, onDeno } from '../../platform.ts';

/** What Node keeps of a stream. Not in the types; the names are those of Node 20 and 22. */
interface Internals {
  _dumped: boolean;
  readonly _readableState: Record<'ended' | 'endEmitted' | 'destroyed' | 'closed' | 'closeEmitted', boolean>;
}

/**
 * Ends the stream of a request that has no body, as `optimizeEmptyRequests` does: that option came with Node 24.10. The
 * stream would be opened, read to its end and closed in several turns after the answer, for nothing.
 */
export function endEmptyRequest(incoming: IncomingMessage): void {
  if (onBun || onDeno || incoming.readableEnded) return;
  const { 'content-length': length, 'transfer-encoding': coding } = incoming.headers;
  if (length !== undefined || coding !== undefined) return;
  const internals = incoming as unknown as Internals; // see above
  internals._dumped = true;
  const state = internals._readableState;
  state.ended = true;
  state.endEmitted = true;
  state.destroyed = true;
  state.closed = true;
  state.closeEmitted = true;
}
