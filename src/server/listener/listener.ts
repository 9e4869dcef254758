import { statSync } from 'node:fs';
import { lstat, rm } from 'node:fs/promises';
import { connect, type Server as NetServer } from 'node:net';
import { dirname } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { codeOf } from '../../core/shown-text.ts';
import { exitCodes, processNumber, StartFailure } from '../lifecycle/exit.ts';
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
  const { host, port, descriptor, exclusive = false } = options;
  const { acceptor, finish } = createHttpServer(options);
  const path = readSocketPath(host);
  if (descriptor === undefined && processNumber === undefined) await removeStale(host);
  await new Promise<void>((resolve, reject) => {
    acceptor.once('error', reject);
    if (descriptor !== undefined) acceptor.listen({ fd: descriptor }, resolve);
    else if (path !== undefined) acceptor.listen(path, resolve);
    else acceptor.listen({ port, host, exclusive }, resolve);
  });
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

/** Opens a listener at the address of two settings. Rejects with `StartFailure` if the address is unavailable. */
export async function openListener(options: ListenerOptions, settings: AddressSettings): Promise<Listener> {
  try {
    return await listen(options);
  } catch (cause) {
    throw new StartFailure(describeListenFailure(options, settings, cause), cause, exitCodes.unavailable);
  }
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

function formatUrl(server: NetServer, scheme: 'http' | 'https'): string {
  const bound = server.address();
  if (bound === null || typeof bound === 'string') return `${unixScheme}${bound ?? ''}`;
  const { address, port } = bound;
  const host = address === '0.0.0.0' || address === '::' ? 'localhost' : address;
  return `${scheme}://${joinAddress(host, port)}`;
}

function joinAddress(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Accepts the backlog, which the system would reset with the listener, then stops. Open connections stay open. */
export async function stopAccepting(server: NetServer): Promise<void> {
  // Node accepts one connection per event-loop iteration, and the current one may have polled the sockets already.
  let quiet = 0;
  const notice = (): void => {
    quiet = 0;
  };
  server.on('connection', notice);
  for (let turn = 0; quiet < 2 && turn < maxWaiting; turn++) {
    quiet++;
    await setImmediate();
  }
  server.off('connection', notice);
  server.close();
}

/** Names of the settings of an address. */
export interface AddressSettings {
  readonly host: string;
  readonly port: string;
}

export function describeListenFailure(address: ListenAddress, settings: AddressSettings, cause: unknown): string {
  const path = readSocketPath(address.host);
  const isUnix = path !== undefined;
  const place = isUnix ? address.host : joinAddress(address.host, address.port);
  const shown = address.descriptor === undefined ? place : 'the socket of systemd';
  const code = isUnix ? (findFolderError(path) ?? codeOf(cause)) : codeOf(cause);
  const known = explainFailures(isUnix, settings);
  const { host, port } = settings;
  const wrong = isUnix ? host : `${host} or ${port}`;
  const why = Object.hasOwn(known, code) ? known[code] : `the system reports ${code}. Correct ${wrong}`;
  return `cannot listen on ${shown}; ${why}`;
}

/** Returns the code of the error that the folder of a socket has: Node reports a missing one as EACCES. */
function findFolderError(path: string): string | undefined {
  try {
    statSync(dirname(path));
    return undefined;
  } catch (cause) {
    return codeOf(cause);
  }
}

/** Returns causes and fixes by the code of Node's error. */
function explainFailures(isUnix: boolean, { host, port }: AddressSettings): Readonly<Record<string, string>> {
  const noSuchName = `the name has no address. Set ${host} to an address of this host, such as 127.0.0.1`;
  return {
    EADDRINUSE: isUnix
      ? `a file or a socket in use is there. Set ${host} to another path, or remove it`
      : `set ${port} to another port, or stop the program that uses it`,
    EADDRNOTAVAIL: `this host has no such address. Set ${host} to 127.0.0.1 for this host only, or to 0.0.0.0 for every network`,
    EACCES: isUnix
      ? `this user may not write there. Set ${host} to another path, or grant write access`
      : `this user may not use that port, as is usual below 1024. Set ${port} to 1024 or more, or grant the process CAP_NET_BIND_SERVICE`,
    ENOENT: `its folder does not exist. Create the folder, or set ${host} to another path`,
    ENOTFOUND: noSuchName,
    EAI_AGAIN: noSuchName,
    EAFNOSUPPORT: `this host does not have that family of addresses. Set ${host} to an IPv4 address`,
  };
}
