import { lstat, rm } from 'node:fs/promises';
import { connect, Server as NetServer } from 'node:net';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { createHttpServer, type HttpServerOptions } from './http-server.ts';

/** Where a listener is opened. */
export interface ListenAddress {
  /** `unix:` with a path is a unix socket. */
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** A socket that somebody else listens on, in place of both. */
  readonly descriptor?: number | undefined;
}

/** How one listener is set up. */
export interface ListenerOptions extends HttpServerOptions, ListenAddress {}

/** A listener that is open. */
export interface Listener {
  readonly url: string;
  /** Stops accepting, finishes what was accepted, and closes what is left after the grace (seconds). */
  close(graceSeconds: number): Promise<void>;
}

const unixScheme = 'unix:';
/** The backlog of a listener of Node, and no more: others go on to come. */
const maxWaiting = 511;

/** Opens a listener. Rejects with Node's own error where the address cannot be had. */
export async function listen(options: ListenerOptions): Promise<Listener> {
  const { acceptor, finish } = createHttpServer(options);
  await openServer(acceptor, options);
  return {
    url: formatUrl(acceptor, options.createTlsServer === undefined ? 'http' : 'https'),
    async close(graceSeconds) {
      await stopAccepting(acceptor);
      await finish(graceSeconds);
    },
  };
}

/** Rejects with Node's own error where the address cannot be had. */
export async function openServer(server: NetServer, address: ListenAddress): Promise<void> {
  const { host, port, descriptor } = address;
  const path = readSocketPath(host);
  if (descriptor === undefined && path !== undefined) await removeStale(path);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    if (descriptor !== undefined) server.listen({ fd: descriptor }, resolve);
    else if (path !== undefined) server.listen(path, resolve);
    else server.listen(port, host, resolve);
  });
}

function readSocketPath(host: string): string | undefined {
  return host.startsWith(unixScheme) ? host.slice(unixScheme.length) : undefined;
}

/** Removes the socket that a killed process has left. Anything else, and a link, stays: the file may be of value. */
async function removeStale(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  // A connection to a regular file is refused as well.
  if (found?.isSocket() !== true) return;
  const isStale = await new Promise<boolean>((resolve) => {
    const probe = connect(path, () => {
      probe.destroy();
      resolve(false);
    });
    // ECONNREFUSED: no process listens.
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
  });
  if (isStale) await rm(path, { force: true });
}

/** The address of a server that listens. */
export function formatUrl(server: NetServer, scheme: 'http' | 'https' = 'http'): string {
  const bound = server.address();
  if (bound === null || typeof bound === 'string') return `${unixScheme}${bound ?? ''}`;
  const { address, family, port } = bound;
  const host = address === '0.0.0.0' || address === '::' ? 'localhost' : address;
  return `${scheme}://${family === 'IPv6' && host !== 'localhost' ? `[${host}]` : host}:${port}`;
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
