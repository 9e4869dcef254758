import type { IncomingMessage } from 'node:http';

/** What a client may still send of a body that nobody wants: then its connection can be used again. */
const maxDiscardedBytes = 1024 * 1024;
const maxDiscardMilliseconds = 2000;

/**
 * Reads what is left of a body, within bounds, when its answer was sent before its end: closed at once, the connection
 * would be reset, and the client could lose the answer.
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
