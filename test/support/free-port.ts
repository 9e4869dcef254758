import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

/** Returns a free port of 127.0.0.1, for a program that cannot report its port. */
export async function findFreePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo; // it listens on TCP
  await once(server.close(), 'close');
  return port;
}
