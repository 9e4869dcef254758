import type { Socket } from 'node:net';
import type { Client } from 'undici';
import { type OpenConnection, resetConnection } from './upstream-connection.ts';

export interface ResponseReader {
  drain(): void;
}

/** A client of undici, which has at most one connection and one request at a time. */
export interface PooledClient {
  readonly client: Client;
  /** Its connection, or the last one; absent before the first. */
  socket?: Socket;
  handler?: ResponseReader | undefined;
}

export interface Pool {
  take(): PooledClient;
  release(pooled: PooledClient): void;
  /** Ends a client whose response is over, and resets its connection; the response must not be paused. */
  reset(pooled: PooledClient): void;
  discard(pooled: PooledClient): void;
  close(): void;
}

export interface PoolOptions extends Client.Options {
  readonly open: OpenConnection;
  readonly isTls: boolean;
  /** Milliseconds. */
  readonly connectTimeout: number;
}

/** Hides the one error that undici treats as the end of a response without a length. */
function hideReset(error: NodeJS.ErrnoException): void {
  if (error.code === 'ECONNRESET') error.code = 'ECONNABORTED';
}

export async function createPool({ open, isTls, connectTimeout, ...options }: PoolOptions): Promise<Pool> {
  const { Client } = await import('undici');
  const all = new Set<PooledClient>();
  /** The last one is taken first, so that those that are not needed close when idle for long. */
  const idle: PooledClient[] = [];

  function create(): PooledClient {
    const pooled: PooledClient = {
      // Always http: with https, undici opens another connection for each Host.
      client: new Client('http://upstream', {
        ...options,
        connect(_, done) {
          const socket = open();
          pooled.socket = socket;
          // Both before the listeners of undici: the end of a connection whose response is paused would fail an assertion
          // there, and end the process.
          socket.on('end', () => pooled.handler?.drain());
          socket.on('error', hideReset);
          connected(socket).then(
            () => done(null, socket),
            (error: Error) => done(error, null),
          );
        },
      }),
    };
    all.add(pooled);
    return pooled;
  }

  function connected(socket: Socket): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = Object.assign(new Error('The upstream has not accepted the connection.'), { code: 'ETIMEDOUT' });
      const deadline = setTimeout(() => socket.destroy(late), connectTimeout);
      socket.once(isTls ? 'secureConnect' : 'connect', () => {
        clearTimeout(deadline);
        resolve();
      });
      socket.on('error', reject);
      // The only event if it was discarded before.
      socket.once('close', () => {
        clearTimeout(deadline);
        reject(new Error('The connection was closed.'));
      });
    });
  }

  function discard(pooled: PooledClient): void {
    all.delete(pooled);
    void pooled.client.destroy();
  }

  return {
    take: () => idle.pop() ?? create(),
    release: (pooled) => void idle.push(pooled),
    reset(pooled) {
      if (pooled.socket !== undefined) resetConnection(pooled.socket);
      discard(pooled);
    },
    discard,
    close() {
      for (const pooled of all) discard(pooled);
    },
  };
}
