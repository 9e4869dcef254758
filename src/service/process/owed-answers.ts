import type { RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { findTaker } from './lent-bytes.ts';

/** Answers that one connection may be owed. An answer is owed until the kernel has taken it. */
const maxOwed = 64;
/** Answers that each of any number of connections may be owed. To be owed more, a connection takes a place. */
const fewOwed = 8;
/** Connections that may wait until what they are owed is taken. Each holds about 200 KiB. One more is closed. */
const maxWaiting = 128;
/**
 * Bytes that all connections together may have read and not parsed; a connection that would exceed it is closed. The
 * stream of each may hold as much again.
 */
const maxHeldBytes = 32 * 1024 * 1024;
/** Milliseconds between two looks at what the kernel has taken. */
const lookInterval = 5000;

/** The end of a request without a body. */
const blankLine = Buffer.from('\r\n\r\n');

/** How long a client may leave its answers unread. */
export interface OwedAnswersOptions {
  /** Seconds without a byte taken, after which a connection is closed. */
  readonly unreadTimeout: number;
  /** The event with which the server begins to read requests: `secureConnection` under TLS. Default `connection`. */
  readonly event?: 'connection' | 'accepted' | 'secureConnection';
}

/** Watches over what the connections of one server are owed. */
export interface OwedAnswers {
  /** Counts what a listener owes. It is not called for a connection that is closed. */
  count(listener: RequestListener): RequestListener;
  /**
   * Gives up a connection that speaks another protocol from now on; returns what was read and not parsed. It is still
   * closed if nothing is taken from it. `undefined` if answers are owed on it: what comes now would go between them.
   */
  release(socket: Socket): Buffer | undefined;
  /** Lets the last answer that each connection is owed now say that it is the last, if no request stands behind it. */
  closeAfterLast(): void;
  close(): void;
}

interface Connection {
  readonly socket: Socket;
  /** Gives bytes to the parser of HTTP. */
  readonly parse: (chunk: Buffer) => void;
  /** Tells Node that the client sends nothing more. It may then end the connection, and what is not parsed has no answer. */
  readonly finish: () => void;
  /** The client sends nothing more, and not all is parsed. */
  ended: boolean;
  /** Read, and not yet parsed. */
  rest: Buffer[];
  /** In the order of their requests, and so of their leaving. */
  readonly owed: ServerResponse[];
  released: boolean;
  /** What the kernel had taken at the last look, and since when there is no more; milliseconds. */
  taken: number;
  stuckSince: number | undefined;
}

/**
 * Bounds what a client can make a server hold by sending requests and never reading answers. Node parses all requests
 * of one read (64 KiB, 1,724 short ones) in one go, and goes on if the connection is closed meanwhile. So a larger read
 * is parsed in slices, and no further while answers are owed.
 *
 * For that the bytes have to pass through here. Node's own way from the socket to the parser cannot be kept, not even until
 * a connection shows what it is: the parser goes to the end of a read, whatever it is told (`pause()` inside a request has
 * no effect on that read), and answers reach the kernel one by one in later turns. So the first read of each connection
 * could owe 1,724 answers, about 4 MiB, and whoever reads them looks the same as who does not.
 */
export function boundOwedAnswers(server: Server, options: OwedAnswersOptions): OwedAnswers {
  const { unreadTimeout, event = 'connection' } = options;
  const connections = new Map<Socket, Connection>();
  const waiting = new Set<Connection>();
  const queue = new Set<Connection>();
  let heldBytes = 0;
  let working = false;

  server.on(event, (socket: Socket) => {
    const [onData] = socket.listeners('data');
    // The last one is the listener of node:http; those before it are the stream's own.
    const onEnd = socket.listeners('end').at(-1);
    // Other runtimes parse outside the stream; there is nothing to slice.
    if (onData === undefined || onEnd === undefined) return;
    const connection: Connection = {
      socket,
      parse: onData.bind(socket) as (chunk: Buffer) => void, // the listener of node:http for this event
      finish: onEnd.bind(socket) as () => void, // as above
      ended: false,
      rest: [],
      owed: [],
      released: false,
      taken: 0,
      stuckSince: undefined,
    };
    connections.set(socket, connection);
    socket.off('data', onData as (chunk: Buffer) => void); // as above
    // With a taker nothing comes this way. Without a listener Node would parse by itself, and read nothing for us.
    socket.on('data', (chunk: Buffer) => read(connection, chunk));
    const taker = findTaker(socket);
    if (taker !== undefined) taker.take = (bytes) => takeBytes(connection, bytes);
    socket.off('end', onEnd as () => void); // as above
    socket.on('end', () => {
      // Who has given the connection up is told by the stream itself.
      if (connection.released) return;
      connection.ended = connection.rest.length > 0;
      if (!connection.ended) connection.finish();
    });
    // Node resumes a socket once its answers are taken; what was read must be parsed before more is read.
    socket.on('resume', () => {
      if (connection.rest.length > 0) socket.pause();
      if (waiting.has(connection)) wake(connection);
    });
    socket.once('close', () => {
      connections.delete(socket);
      waiting.delete(connection);
      heldBytes -= countBytes(connection.rest);
      connection.rest = [];
    });
  });

  /** As the stream says it: whether more may be read. */
  const takeBytes = (connection: Connection, bytes: Buffer): boolean => {
    if (connection.released) return connection.socket.push(Buffer.from(bytes));
    read(connection, bytes);
    return true;
  };

  const read = (connection: Connection, chunk: Buffer): void => {
    if (
      connection.rest.length === 0 &&
      countOwed(connection) < fewOwed &&
      !isPausedByNode(connection) &&
      isOneRequest(chunk)
    ) {
      connection.parse(chunk);
      return;
    }
    if (heldBytes + chunk.length > maxHeldBytes) {
      connection.socket.destroy();
      return;
    }
    heldBytes += chunk.length;
    // The chunk may be lent.
    connection.rest.push(Buffer.from(chunk));
    connection.socket.pause();
    if (!waiting.has(connection)) enqueue(connection);
  };

  /** Parses one slice if that may be, and sees to what is left. */
  const goOn = (connection: Connection): void => {
    if (isOver(connection)) return;
    if (countOwed(connection) < maxOwed && !isPausedByNode(connection) && connection.rest.length > 0) {
      const slice = takeSlice(connection);
      heldBytes -= slice.length;
      connection.parse(slice);
      if (isOver(connection)) return;
    }
    if (connection.ended && connection.rest.length === 0) connection.finish();
    else if (isOwedMuch(connection)) wait(connection);
    else if (connection.rest.length > 0) enqueue(connection);
    else connection.socket.resume();
  };

  const wait = (connection: Connection): void => {
    if (waiting.size >= maxWaiting) {
      connection.socket.destroy();
      return;
    }
    waiting.add(connection);
    // Not the last, whose request may have a body that is not yet parsed. If Node has paused the socket, it resumes it.
    if (!isPausedByNode(connection)) connection.owed.at(-2)?.once('close', () => wake(connection));
  };

  const wake = (connection: Connection): void => {
    waiting.delete(connection);
    if (isOwedMuch(connection)) wait(connection);
    else enqueue(connection);
  };

  const enqueue = (connection: Connection): void => {
    queue.add(connection);
    if (!working) setImmediate(work);
    working = true;
  };

  /** One slice in one turn of the event loop: a turn accepts one connection, and other clients should not wait long. */
  const work = (): void => {
    const [connection] = queue;
    if (connection !== undefined) {
      queue.delete(connection);
      goOn(connection);
    }
    working = queue.size > 0;
    if (working) setImmediate(work);
  };

  const look = setInterval(
    () => {
      const now = performance.now();
      for (const connection of connections.values()) {
        if (isStuck(connection, now, unreadTimeout * 1000)) connection.socket.destroy();
      }
    },
    Math.min(lookInterval, unreadTimeout * 1000),
  ).unref();

  return {
    count: (listener) => (incoming, outgoing) => {
      const { socket } = incoming;
      if (socket.destroyed) return;
      const connection = connections.get(socket);
      connection?.owed.push(outgoing);
      listener(incoming, outgoing);
    },
    release(socket) {
      const connection = connections.get(socket);
      if (connection === undefined) return Buffer.alloc(0);
      if (countOwed(connection) > 0) return undefined;
      connection.released = true;
      waiting.delete(connection);
      socket.removeAllListeners('data');
      const rest = Buffer.concat(connection.rest);
      heldBytes -= rest.length;
      connection.rest = [];
      return rest;
    },
    closeAfterLast() {
      for (const { owed, rest } of connections.values()) {
        const last = rest.length === 0 ? owed.at(-1) : undefined;
        if (last?.headersSent === false) last.shouldKeepAlive = false;
      }
    },
    close: () => clearInterval(look),
  };
}

function countBytes(chunks: readonly Buffer[]): number {
  return chunks.reduce((bytes, { length }) => bytes + length, 0);
}

function isOver({ socket, released }: Connection): boolean {
  return released || socket.destroyed || socket.writableEnded;
}

/** Forgets what was taken. Answers are taken in their order. */
function countOwed({ owed }: Connection): number {
  while (owed[0]?.writableFinished === true) owed.shift();
  return owed.length;
}

/** Whether a connection must wait. What is left then may stand in the queue for long, and what it holds with it. */
function isOwedMuch(connection: Connection): boolean {
  return countOwed(connection) > fewOwed || isPausedByNode(connection);
}

/** Node stops its parser while it holds 16 KiB of answers; to parse then is an error. */
function isPausedByNode({ socket }: Connection): boolean {
  const { _paused: paused } = socket as { readonly _paused?: boolean }; // not in the types; node:http sets it
  return paused === true;
}

/** Whether no second request begins in these bytes. A body with a blank line only makes it look so. */
function isOneRequest(chunk: Buffer): boolean {
  const found = chunk.indexOf(blankLine);
  return found === -1 || found + blankLine.length === chunk.length;
}

/** Takes the bytes up to the end of so many requests as there is room for. */
function takeSlice(connection: Connection): Buffer {
  const [chunk = Buffer.alloc(0), ...others] = connection.rest;
  let end = 0;
  for (let room = maxOwed - connection.owed.length; room > 0 && end < chunk.length; room--) {
    const found = chunk.indexOf(blankLine, end);
    end = found === -1 ? chunk.length : found + blankLine.length;
  }
  connection.rest = end === chunk.length ? others : [chunk.subarray(end), ...others];
  return chunk.subarray(0, end);
}

/** Whether there are bytes to be taken, and none was for so many milliseconds. */
function isStuck(connection: Connection, now: number, limit: number): boolean {
  const { socket } = connection;
  if (socket.writableLength === 0) {
    connection.stuckSince = undefined;
    return false;
  }
  const taken = socket.bytesWritten - leftToTake(socket);
  if (connection.stuckSince === undefined || taken !== connection.taken) {
    connection.taken = taken;
    connection.stuckSince = now;
    return false;
  }
  return now - connection.stuckSince >= limit;
}

/** Bytes; of a part that was taken in pieces Node tells only by its handle. */
function leftToTake(socket: Socket): number {
  const { _handle: handle } = socket as { readonly _handle?: { readonly writeQueueSize?: number } | null }; // not in the types
  return handle?.writeQueueSize ?? socket.writableLength;
}
