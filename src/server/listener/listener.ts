import { lstat, rm } from 'node:fs/promises';
import { connect, Server as NetServer } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { codeOf } from '../../core/shown-text.ts';
import { processNumber } from '../lifecycle/exit.ts';
import { createHttpServer, type HttpServerOptions } from './http-server.ts';

export interface ListenAddress {
  /** A host, or `unix:` and the path of a unix socket. */
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** A listening socket of another process, instead of both. */
  readonly descriptor?: number | undefined;
  /** True for a listener that the processes of a supervisor do not share. */
  readonly exclusive?: boolean;
}

export interface ListenerOptions extends HttpServerOptions, ListenAddress {}

const unixScheme = 'unix:';
const maxWaiting = 511;

/** Opens a listener. Rejects with Node's error if the address is unavailable. */
export async function listen(options: ListenerOptions) {
  const { acceptor, finish } = createHttpServer(options);
  await openServer(acceptor, options);
  return {
    url: formatUrl(acceptor, options.createTlsServer === undefined ? 'http' : 'https'),
    /** Stops accepting, finishes what was accepted, and closes what is left after the grace (seconds). */
    async close(graceSeconds: number): Promise<void> {
      await stopAccepting(acceptor);
      await finish(graceSeconds);
    },
  };
}

export type Listener = Awaited<ReturnType<typeof listen>>;

/** Rejects with Node's error if the address is unavailable. */
export async function openServer(server: NetServer, address: ListenAddress): Promise<void> {
  const { host, port, descriptor, exclusive = false } = address;
  const path = readSocketPath(host);
  if (descriptor === undefined && processNumber === undefined) await removeStale(host);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    if (descriptor !== undefined) server.listen({ fd: descriptor }, resolve);
    else if (path !== undefined) server.listen(path, resolve);
    else server.listen({ port, host, exclusive }, resolve);
  });
}

function readSocketPath(host: string): string | undefined {
  return host.startsWith(unixScheme) ? host.slice(unixScheme.length) : undefined;
}

/** Removes the socket that a killed process has left. Keeps other files and links. */
export async function removeStale(host: string): Promise<void> {
  const path = readSocketPath(host);
  if (path === undefined) return;
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

export function formatUrl(server: NetServer, scheme: 'http' | 'https' = 'http'): string {
  const bound = server.address();
  if (bound === null || typeof bound === 'string') return `${unixScheme}${bound ?? ''}`;
  const { address, family, port } = bound;
  const host = address === '0.0.0.0' || address === '::' ? 'localhost' : address;
  return `${scheme}://${family === 'IPv6' && host !== 'localhost' ? `[${host}]` : host}:${port}`;
}

/** Accepts the backlog, then stops. Open connections stay open. */
export async function stopAccepting(server: NetServer): Promise<void> {
  await acceptWaiting(server);
  // `http.Server.close()` would close idle connections immediately, and drop requests that have arrived on them but have
  // not been read.
  NetServer.prototype.close.call(server);
}

/** The system resets the backlog with the listener. Node accepts one connection per event-loop iteration. */
async function acceptWaiting(server: NetServer): Promise<void> {
  let quiet = 0;
  const notice = (): void => {
    quiet = 0;
  };
  server.on('connection', notice);
  // The current iteration may have polled the sockets already.
  for (let turn = 0; quiet < 2 && turn < maxWaiting; turn++) {
    quiet++;
    await setImmediate();
  }
  server.off('connection', notice);
}

export interface AddressSettings {
  readonly host: string;
  readonly port: string;
}

export interface FailedAddress {
  /** Host and port, the path of a unix socket, or a description. */
  readonly shown: string;
  readonly isUnix: boolean;
  readonly settings: AddressSettings;
}

type Describe = (address: FailedAddress) => string;

const chooseAnother: Describe = ({ isUnix, settings: { host, port } }) =>
  isUnix
    ? `a file or a socket in use is there. Set ${host} to another path, or remove it`
    : `set ${port} to another port, or stop the program that uses it`;
const noSuchName: Describe = ({ settings: { host } }) =>
  `the name has no address. Set ${host} to an address of this host, such as 127.0.0.1`;

/** Causes and fixes by the code of Node's error. */
const reasons: Readonly<Record<string, Describe>> = {
  EADDRINUSE: chooseAnother,
  EADDRNOTAVAIL: ({ settings: { host } }) =>
    `this host has no such address. Set ${host} to 127.0.0.1 for this host only, or to 0.0.0.0 for every network`,
  EACCES: ({ isUnix, settings: { host, port } }) =>
    isUnix
      ? `this user may not write there. Set ${host} to another path, or grant write access`
      : `this user may not use that port, as is usual below 1024. Set ${port} to 1024 or more, or grant the process CAP_NET_BIND_SERVICE`,
  ENOENT: ({ settings: { host } }) => `its folder does not exist. Create the folder, or set ${host} to another path`,
  ENOTFOUND: noSuchName,
  EAI_AGAIN: noSuchName,
  EAFNOSUPPORT: ({ settings: { host } }) =>
    `this host does not have that family of addresses. Set ${host} to an IPv4 address`,
};

export function describeListenFailure(address: FailedAddress, cause: unknown): string {
  const code = codeOf(cause);
  const describe = Object.hasOwn(reasons, code) ? reasons[code] : undefined;
  const { host, port } = address.settings;
  const why = describe?.(address) ?? `the system reports ${code}. Correct ${host} or ${port}`;
  return `cannot listen on ${address.shown}; ${why}`;
}
