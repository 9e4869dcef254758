import { createServer, type Socket } from 'node:net';
import type { ConnectionLimit } from '../listener/connection-limit.ts';
import { formatUrl, type ListenAddress, openServer, stopAccepting } from '../listener/listener.ts';
import type { WorkerChannel } from './channel.ts';

export interface Taker {
  readonly channel: WorkerChannel;
  /** True for a worker that is skipped while others respond. */
  isSilent(): boolean;
}

/** Accepts the connections of the API in the primary process, and passes each to a worker. */
export interface HandOver {
  readonly url: string;
  add(taker: Taker): void;
  /** Passes no more connections to the worker. It keeps those that it has. */
  remove(taker: Taker): void;
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
  /** The workers that take connections: the next one first. */
  const takers = new Set<Taker>();
  const waiting = new Set<Socket>();
  /** Connections that a worker has not confirmed. This process keeps them open until then. */
  const unconfirmed = new Map<Taker, Map<number, Socket>>();
  let nextId = 0;
  const server = createServer({ pauseOnConnect: true });

  const pass = (socket: Socket): void => {
    const all = [...takers];
    const taker = all.find((each) => !each.isSilent()) ?? all[0];
    if (taker !== undefined) {
      takers.delete(taker);
      takers.add(taker); // as the last one
      send(taker, socket);
    } else if (waiting.size < maxWaiting) waiting.add(socket);
    else {
      limit.note();
      socket.destroy();
    }
  };

  const send = (taker: Taker, socket: Socket): void => {
    const id = nextId++;
    unconfirmed.get(taker)?.set(id, socket);
    // If it cannot be sent, it is passed on when the worker has ended.
    taker.channel.call('connection', id, socket);
  };

  if (limit.most !== undefined) server.maxConnections = limit.most;
  server.on('drop', limit.note);
  server.on('connection', pass);
  await openServer(server, address);
  return {
    url: formatUrl(server, scheme),
    add(taker) {
      const sent = new Map<number, Socket>();
      unconfirmed.set(taker, sent);
      taker.channel.provide({
        taken(id) {
          sent.get(id)?.destroy();
          sent.delete(id);
        },
      });
      taker.channel.onClose(() => {
        takers.delete(taker);
        unconfirmed.delete(taker);
        for (const socket of sent.values()) pass(socket);
      });
      takers.add(taker);
      for (const socket of waiting) send(taker, socket);
      waiting.clear();
    },
    remove: (taker) => void takers.delete(taker),
    async close() {
      await stopAccepting(server);
      for (const socket of waiting) socket.destroy();
    },
  };
}
