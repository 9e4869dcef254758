import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';

export interface Listening {
  readonly port: number;
  /** With plain HTTP. */
  readonly origin: string;
  /** Drops its connections too, if it speaks HTTP/1. */
  close(): Promise<void>;
}

/** Listens on a free loopback port. */
export async function listen(server: Server): Promise<Listening> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo; // it listens on TCP
  return {
    port,
    origin: `http://127.0.0.1:${port}`,
    async close() {
      const closed = once(server, 'close');
      server.close(); // returns nothing for HTTP/2 on Node 24
      (server as Partial<HttpServer>).closeAllConnections?.();
      await closed;
    },
  };
}
