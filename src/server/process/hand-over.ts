import type { Worker } from 'node:cluster';
import { createServer, type Socket } from 'node:net';
import type { ConnectionLimit } from '../listener/limits.ts';
import { formatUrl, type ListenAddress, openServer, stopAccepting } from '../listener/listener.ts';
import type { ToWorker } from './messages.ts';

/** Accepts the connections of the API in the primary process, and passes each to a worker. */
export interface HandOver {
  readonly url: string;
  add(worker: Worker): void;
  confirm(worker: Worker, id: number): void;
  /** Passes no more connections to the worker. It keeps those that it has. */
  remove(worker: Worker): void;
  /** Passes the connections that an ended worker has not taken to other workers. */
  reassign(worker: Worker): void;
  /** Skips a silent worker while others respond. */
  setSilent(worker: Worker, silent: boolean): void;
  /** Accepts the backlog, then stops. Settles when every accepted connection was sent to a worker. */
  close(): Promise<void>;
}

export interface HandOverOptions extends ListenAddress {
  readonly scheme: 'http' | 'https';
  readonly limit: ConnectionLimit;
}

/** Connections that wait for a worker to start; one more is closed. */
const maxWaiting = 1024;

/**
 * Opens the listener. The primary process owns it, so that a shutdown has an order: the last connection is accepted and
 * passed on before any worker ends. Workers of `node:cluster` that listen close one after the other, and reset
 * connections that arrive meanwhile.
 */
export async function openHandOver({ scheme, limit, ...address }: HandOverOptions): Promise<HandOver> {
  const ready = new Set<Worker>();
  const silent = new Set<Worker>();
  const waiting = new Set<Socket>();
  /** Connections that a worker has not confirmed. This process keeps them open until then. */
  const unconfirmed = new Map<Worker, Map<number, Socket>>();
  let nextId = 0;
  const server = createServer({ pauseOnConnect: true });

  const next = (): Worker | undefined => {
    const [first] = ready;
    const found = Array.from(ready).find((worker) => !silent.has(worker)) ?? first;
    if (found === undefined) return undefined;
    ready.delete(found);
    ready.add(found); // as the last one
    return found;
  };

  const pass = (socket: Socket): void => {
    const worker = next();
    if (worker !== undefined) send(worker, socket);
    else if (waiting.size < maxWaiting) waiting.add(socket);
    else refuse(socket);
  };

  const refuse = (socket: Socket): void => {
    limit.note();
    socket.destroy();
  };

  const send = (worker: Worker, socket: Socket): void => {
    const id = nextId++;
    const message: ToWorker = { type: 'connection', id };
    unconfirmed.get(worker)?.set(id, socket);
    // If it cannot be sent, it is reassigned when the worker has ended.
    if (worker.isConnected()) worker.send(message, socket, { keepOpen: true }, () => {});
  };

  if (limit.most !== undefined) server.maxConnections = limit.most;
  server.on('drop', limit.note);
  server.on('connection', pass);
  await openServer(server, address);
  return {
    url: formatUrl(server, scheme),
    add(worker) {
      ready.add(worker);
      unconfirmed.set(worker, new Map());
      for (const socket of waiting) send(worker, socket);
      waiting.clear();
    },
    confirm(worker, id) {
      unconfirmed.get(worker)?.get(id)?.destroy();
      unconfirmed.get(worker)?.delete(id);
    },
    remove(worker) {
      ready.delete(worker);
      silent.delete(worker);
    },
    reassign(worker) {
      const left = unconfirmed.get(worker)?.values() ?? [];
      unconfirmed.delete(worker);
      for (const socket of left) pass(socket);
    },
    setSilent(worker, isSilent) {
      if (isSilent) silent.add(worker);
      else silent.delete(worker);
    },
    async close() {
      await stopAccepting(server);
      for (const socket of waiting) socket.destroy();
    },
  };
}
