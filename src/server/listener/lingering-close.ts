import type { Socket } from 'node:net';
import { discardLimits } from '../http/exchange.ts';

/** Milliseconds without a byte of the client. */
const idleMilliseconds = 1000;

/**
 * Closes a socket whose last response was sent, after its client has ended its side (RFC 9112 §9.6). What the client sends until
 * then is discarded, within limits: a reset could reach the client before it has read the response.
 */
export function closeAfterClient(socket: Socket): void {
  const end = performance.now() + discardLimits.milliseconds;
  const maxRead = socket.bytesRead + discardLimits.bytes;
  const close = (): void => void socket.destroy();
  if (socket.readableEnded) {
    close();
    return;
  }
  const deadline = setTimeout(close, idleMilliseconds);
  socket.once('close', () => clearTimeout(deadline));
  socket.removeAllListeners('data').once('end', close);
  socket.on('data', () => {
    if (socket.bytesRead > maxRead) close();
    else if (performance.now() < end) deadline.refresh();
  });
  socket.resume();
}
