import type { Socket } from 'node:net';
import type { TakeSocket } from '../http/exchange.ts';
import type { ClientConnection } from './client-connection.ts';

export interface TunnelLimits {
  /** Seconds until a connection is closed whose peer takes no byte. */
  readonly unreadTimeout: number;
  /** Seconds until an idle tunnel is closed. */
  readonly tunnelTimeout: number;
}

/** Checks of the sockets within the shorter limit. */
const checksPerLimit = 4;

/**
 * Limits a connection that offers a WebSocket: until its tunnel exists as any request, then as a tunnel. Returns the function
 * that makes it one. Does not use the timer of the socket, which begins again with each byte that the peer sends.
 */
export function limitUpgrade(
  { socket }: ClientConnection,
  head: Buffer,
  { unreadTimeout, tunnelTimeout }: TunnelLimits,
): TakeSocket {
  const period = Math.min(unreadTimeout, tunnelTimeout) / checksPerLimit;
  /** Creates a check: true once the number has been the same for the limit. NaN equals no number. */
  const createCheck = (limit: number, read: () => number): (() => boolean) => {
    let before = Number.NaN;
    let seconds = 0;
    return () => {
      const now = read();
      seconds = now === before ? seconds + period : 0;
      before = now;
      return seconds >= limit;
    };
  };
  const checkUnread = (each: Socket): (() => boolean) =>
    createCheck(unreadTimeout, () =>
      each.writableLength === 0 ? Number.NaN : each.bytesWritten - each.writableLength,
    );
  const checks = [checkUnread(socket)];
  const timer = setInterval(() => {
    if (checks.some((isOver) => isOver())) socket.destroy();
  }, period * 1000);
  socket.once('close', () => clearInterval(timer));
  // Reads, because only a read shows the client's end. A client that sends before the tunnel exists is read once.
  const hold = (chunk: Buffer): void => {
    socket.pause();
    socket.unshift(chunk);
  };
  const cancel = (): void => void socket.destroy();
  socket.setTimeout(0);
  socket.once('data', hold).once('end', cancel).resume();
  return (upstream) => {
    socket.off('data', hold).off('end', cancel).pause();
    checks.push(
      checkUnread(upstream),
      createCheck(tunnelTimeout, () => socket.bytesRead + socket.bytesWritten),
    );
    return { socket, head };
  };
}
