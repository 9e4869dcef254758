import type { Server } from 'node:http';
import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { onBun, onDeno } from '../../platform.ts';

/** What takes the bytes of one connection. */
export interface ByteTaker {
  /**
   * Takes what was read. Whoever keeps it must copy it: the next read of any connection comes to the same place. `false`
   * says that nothing more is read until the socket is resumed.
   */
  take(bytes: Buffer): boolean;
}

/** What is not in the types: the handle of a socket, and two options for a new one. */
interface WithHandle {
  readonly _handle: object | null;
}
interface ReopenOptions extends SocketConstructorOpts {
  readonly handle: object;
  readonly onread: OnReadOpts;
}

/** As much as Node reads at once. */
const readBytes = 64 * 1024;

const takers = new WeakMap<Socket, ByteTaker>();

/** What takes the bytes of a connection; `undefined` for one that is read in the usual way, as under TLS. */
export function findTaker(socket: Socket): ByteTaker | undefined {
  return takers.get(socket);
}

/**
 * Lets a server read all connections into one buffer, by the option `onread` of sockets. Node makes a buffer of 64 KiB for
 * each read, and cuts it to what has come. Emits `accepted` with each connection once Node serves it. Returns the event that
 * tells of connections: it is `connection` on other runtimes, which read in their own way.
 */
export function lendBytes(server: Server): 'accepted' | 'connection' {
  const [serve] = server.listeners('connection');
  if (serve === undefined || onBun || onDeno) return 'connection';
  const buffer = Buffer.allocUnsafeSlow(readBytes);
  server.off('connection', serve as () => void); // as it was given
  server.on('connection', (accepted: Socket) => {
    const socket = reopen(accepted, buffer);
    serve.call(server, socket);
    server.emit('accepted', socket);
  });
  return 'accepted';
}

/** The same connection as another socket: this option can be given only where a socket is made. */
function reopen(accepted: Socket, buffer: Buffer): Socket {
  const { _handle: handle } = accepted as unknown as WithHandle;
  if (handle === null) return accepted;
  Object.assign(accepted, { _handle: null });
  const taker: ByteTaker = { take: () => false };
  const options: ReopenOptions = {
    handle,
    allowHalfOpen: accepted.allowHalfOpen,
    readable: true,
    writable: true,
    onread: { buffer, callback: (length) => taker.take(buffer.subarray(0, length)) },
  };
  const socket = new Socket(options);
  takers.set(socket, taker);
  // Whoever counts connections has seen the first one.
  socket.once('close', () => accepted.destroy());
  return socket;
}
