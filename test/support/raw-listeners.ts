import { once } from 'node:events';
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { afterEach } from 'vitest';
import { errorBodyFormats } from '../../src/core/refusal/error-body.ts';
import { type Listener, type ListenerOptions, listen } from '../../src/server/listener/listener.ts';

/** Opens listeners and connections to them, and closes them after each test. */
export function useListeners() {
  const listeners: Listener[] = [];
  const sockets: Socket[] = [];
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    for (const listener of listeners.splice(0)) await listener.close(0);
  });
  return {
    /** Starts a listener and returns its port. */
    async open(options: Partial<ListenerOptions> & Pick<ListenerOptions, 'onRequest'>): Promise<number> {
      const listener = await listen({
        ...{ host: '127.0.0.1', port: 0, keepAlive: 60, errorBody: errorBodyFormats.detail },
        ...options,
      });
      listeners.push(listener);
      return Number(new URL(listener.url).port);
    },
    /** Opens a connection. The server may reset it without an error in the test. */
    async dial(port: number, options: Partial<TcpNetConnectOpts> = {}): Promise<Socket> {
      const socket = connect({ port, host: '127.0.0.1', ...options }).on('error', () => {});
      sockets.push(socket);
      await once(socket, 'connect');
      return socket;
    },
  };
}
