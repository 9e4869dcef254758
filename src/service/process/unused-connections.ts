import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** The connections of one server along which nothing was ever asked. */
export interface UnusedConnections {
  /** Closes those that have been open for so many seconds: who has just connected may be about to ask. */
  close(seconds: number): void;
}

/**
 * Watches them. Node counts a connection as idle only after its first answer, so `closeIdleConnections()` does not close what
 * browsers and pools have opened in advance. Under TLS the same goes for a connection after its handshake, and for one whose
 * handshake does not end. `event` tells of connections as they come.
 */
export function watchUnused(server: Server, event: 'connection' | 'accepted', isTls: boolean): UnusedConnections {
  /** When each was opened, in milliseconds. */
  const opened = new Map<Socket, number>();
  /** Those in their handshake, by the client: Node tells of its end with another socket. */
  const handshakes = new Map<string, Socket>();
  const note = (socket: Socket): void => {
    opened.set(socket, performance.now());
    socket.once('close', () => opened.delete(socket));
  };
  server.on(event, note);
  if (isTls) {
    server.on(event, (socket: Socket) => {
      const client = nameClient(socket);
      handshakes.set(client, socket);
      socket.once('close', () => handshakes.delete(client));
    });
    server.on('secureConnection', (socket: Socket) => {
      handshakes.delete(nameClient(socket));
      note(socket);
    });
  }
  return {
    close(seconds) {
      const latest = performance.now() - seconds * 1000;
      for (const [socket, since] of opened) {
        const isUnused = socket.bytesRead === 0 || handshakes.get(nameClient(socket)) === socket;
        if (isUnused && since <= latest) socket.destroy();
      }
    },
  };
}

function nameClient({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
