import type { Worker } from 'node:cluster';
import { createServer, type Socket } from 'node:net';
import type { ConnectionLimit } from '../listener/descriptors.ts';
import { formatUrl, type ListenAddress, openServer, stopAccepting } from '../listener/listener.ts';
import type { ToWorker } from './messages.ts';

/** Accepts the connections of the API in the primary process, and hands each to a worker. */
export interface HandOver {
  readonly url: string;
  /** The worker can take connections from now on. */
  add(worker: Worker): void;
  /** The worker has taken a connection. */
  confirm(worker: Worker, id: number): void;
  /** The worker is handed nothing more. What was handed to it before stays with it. */
  remove(worker: Worker): void;
  /** The worker has ended: another gets what it has not taken. */
  bury(worker: Worker): void;
  /** Whether a worker is passed over while there are others: it has not answered for a moment. */
  setSilent(worker: Worker, silent: boolean): void;
  /** Accepts what waits, then nothing more. Settles when everything that was accepted is on its way to a worker. */
  close(): Promise<void>;
}

/** What is accepted, and how it is said. */
export interface HandOverOptions extends ListenAddress {
  readonly scheme: 'http' | 'https';
  readonly limit: ConnectionLimit;
}

/** Connections that wait for a worker to start; one more is closed. */
const maxWaiting = 1024;

/**
 * Opens the listener. The primary process keeps it, so that a stop can be done in order: the last connection is accepted
 * and handed over, and only then a worker is told to end. The workers of `node:cluster` close one after the other, and
 * what comes meanwhile is reset.
 */
export async function openHandOver({ scheme, limit, ...address }: HandOverOptions): Promise<HandOver> {
  const ready = new Set<Worker>();
  const silent = new Set<Worker>();
  const waiting = new Set<Socket>();
  /** By worker, connections that it has not confirmed. This process keeps them open until then. */
  const underWay = new Map<Worker, Map<number, Socket>>();
  let nextId = 0;
  const server = createServer({ pauseOnConnect: true });

  const next = (): Worker | undefined => {
    const [first] = ready;
    const found = Array.from(ready).find((worker) => !silent.has(worker)) ?? first;
    if (found === undefined) return undefined;
    // To the end of the line.
    ready.delete(found);
    ready.add(found);
    return found;
  };

  const hand = (socket: Socket): void => {
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
    underWay.get(worker)?.set(id, socket);
    // What cannot be sent is handed to another worker when this one has ended.
    if (worker.isConnected()) worker.send(message, socket, { keepOpen: true }, () => {});
  };

  if (limit.most !== undefined) server.maxConnections = limit.most;
  server.on('drop', limit.note);
  server.on('connection', hand);
  await openServer(server, address);
  return {
    url: formatUrl(server, scheme),
    add(worker) {
      ready.add(worker);
      underWay.set(worker, new Map());
      for (const socket of waiting) send(worker, socket);
      waiting.clear();
    },
    confirm(worker, id) {
      underWay.get(worker)?.get(id)?.destroy();
      underWay.get(worker)?.delete(id);
    },
    remove(worker) {
      ready.delete(worker);
      silent.delete(worker);
    },
    bury(worker) {
      const left = underWay.get(worker)?.values() ?? [];
      underWay.delete(worker);
      for (const socket of left) hand(socket);
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
