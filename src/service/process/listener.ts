import { type AddressInfo, Server as NetServer } from 'node:net';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { createHttpServer, type HttpServerOptions } from './http-server.ts';

/** Where a listener is opened. */
export interface ListenAddress {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
}

/** How one listener is set up. */
export interface ListenerOptions extends HttpServerOptions, ListenAddress {}

/** A listener that is open. */
export interface Listener {
  readonly url: string;
  /** Stops accepting, finishes what was accepted, and closes what is left after the grace (seconds). */
  close(graceSeconds: number): Promise<void>;
}

/** The backlog of a listener of Node, and no more: others go on to come. */
const maxWaiting = 511;

/** Opens a listener. Rejects with Node's own error where the address cannot be had. */
export async function listen(options: ListenerOptions): Promise<Listener> {
  const { server, finish } = createHttpServer(options);
  await openServer(server, options);
  return {
    url: formatUrl(server),
    async close(graceSeconds) {
      await stopAccepting(server);
      await finish(graceSeconds);
    },
  };
}

/** Rejects with Node's own error where the address cannot be had. */
export async function openServer(server: NetServer, { host, port }: ListenAddress): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
}

/** The address of a server that listens. */
export function formatUrl(server: NetServer): string {
  const { address, family, port } = server.address() as AddressInfo; // TCP always
  const host = address === '0.0.0.0' || address === '::' ? 'localhost' : address;
  return `http://${family === 'IPv6' && host !== 'localhost' ? `[${host}]` : host}:${port}`;
}

/** Accepts what waits, then nothing more. Connections that are open stay so. */
export async function stopAccepting(server: NetServer): Promise<void> {
  await acceptWaiting(server);
  // `http.Server.close()` would close idle connections immediately, and drop requests that have arrived on them but have
  // not been read.
  const { close } = server instanceof NetServer ? NetServer.prototype : server;
  close.call(server);
}

/** Connections that the system has already made for us would be reset with the listener. Node accepts one a turn. */
async function acceptWaiting(server: NetServer): Promise<void> {
  let quiet = 0;
  const notice = (): void => {
    quiet = 0;
  };
  server.on('connection', notice);
  // Deno looks at its sockets before a timer, not before an immediate.
  await sleep(0);
  // The turn that has begun may have looked at the sockets before.
  for (let turn = 0; quiet < 2 && turn < maxWaiting; turn++) {
    quiet++;
    await setImmediate();
  }
  server.off('connection', notice);
}
