import type { IncomingMessage } from 'node:http';

/** Maximum size of the rest of a body that is discarded: many clients read the response only after they have sent the body. */
const maxDiscardedBytes = 64 * 1024 * 1024;
/** The time limit of a client that takes no byte. */
const maxDiscardMilliseconds = 30_000;

/**
 * Discards the rest of a body, within limits, after its response was sent early. An immediate close would reset the
 * connection, and the client could lose the response.
 */
export function discardRest(incoming: IncomingMessage): void {
  if (incoming.complete || incoming.destroyed) return;
  const { socket } = incoming;
  let left = maxDiscardedBytes;
  const deadline = setTimeout(() => socket.destroy(), maxDiscardMilliseconds);
  const done = (): void => clearTimeout(deadline);
  incoming.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) socket.destroy();
  });
  incoming.once('end', done).once('close', done).resume();
}
