import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';

/** Listens on a free loopback port. `origin` is for plain HTTP. */
export async function listen(server: Server) {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo; // it listens on TCP
  return {
    port,
    origin: `http://127.0.0.1:${port}`,
    /** Drops its connections too, if it speaks HTTP/1. */
    async close() {
      const closed = once(server, 'close');
      server.close(); // returns nothing for HTTP/2 on Node 24
      (server as Partial<HttpServer>).closeAllConnections?.();
      await closed;
    },
  };
}
