import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** The connections of one server along which nothing was ever asked. */
export interface UnusedConnections {
  /** Closes those that have been open for so many seconds: who has just connected may be about to ask. */
  close(seconds: number): void;
}

/**
 * Watches them. Node counts a connection as idle only after its first answer, so `closeIdleConnections()` does not close what
 * browsers and pools have opened in advance. Under TLS the same goes for a connection after its handshake.
 */
export function watchUnused(server: Server, event: 'connection' | 'accepted'): UnusedConnections {
  /** When each was opened, in milliseconds. */
  const opened = new Map<Socket, number>();
  const note = (socket: Socket): void => {
    opened.set(socket, performance.now());
    socket.once('close', () => opened.delete(socket));
  };
  server.on(event, note);
  server.on('secureConnection', note);
  return {
    close(seconds) {
      const latest = performance.now() - seconds * 1000;
      for (const [socket, since] of opened) {
        if (socket.bytesRead === 0 && since <= latest) socket.destroy();
      }
    },
  };
}
