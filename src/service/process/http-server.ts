import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { type ErrorBodyFormat, statusPhrases } from '../../refusal/error-body.ts';
import type { ConnectionLimit } from './descriptors.ts';
import { endEmptyRequest } from './empty-requests.ts';
import { lendBytes } from './lent-bytes.ts';
import type { CreateTlsServer } from './open-tls.ts';
import { boundOwedAnswers, type OwedAnswers } from './owed-answers.ts';
import { watchUnused } from './unused-connections.ts';
import { createUpgradeAnswer } from './upgrade-answer.ts';

/** The connection of a client, for another protocol from now on, and what it has sent of that. */
export interface TakenSocket {
  readonly socket: Socket;
  readonly head: Buffer;
}

/** A request that asks for an upgrade: it is answered, or its connection is taken. */
export type UpgradeListener = (incoming: IncomingMessage, outgoing: ServerResponse, take: () => TakenSocket) => void;

/** How requests are read from connections. */
export interface HttpServerOptions {
  readonly onRequest: RequestListener;
  /** Seconds that an idle connection is kept. */
  readonly keepAlive: number;
  /** Form of the bodies for requests that are not HTTP enough to reach the app. */
  readonly errorBody: ErrorBodyFormat;
  /** Told of each such request, with the status it got. */
  readonly onMalformed?: (status: number) => void;
  /** Told of each connection that is opened (1) or closed (-1). */
  readonly onConnection?: (change: 1 | -1) => void;
  /** Called before a connection is closed in the middle: requests along it may have answers that are not yet sent. */
  readonly beforeCut?: () => void;
  /** Creates the server. Default: one without TLS. */
  readonly createTlsServer?: CreateTlsServer | undefined;
  /** How many connections may be open. Default: any number. */
  readonly limit?: ConnectionLimit;
  /** Seconds without a byte of an answer taken, after which a connection is closed. Default 30. */
  readonly unreadTimeout?: number;
  /** Seconds that a new connection has for its first byte once the server ends. Default 2. */
  readonly firstByteTimeout?: number;
  /** Answers a request with an `Expect` other than `100-continue` (RFC 9110 §10.1.1). Default: Node does, without a word. */
  readonly onExpectation?: RequestListener;
  /**
   * Makes this a server of streams: a body may take as long as it moves, `Expect: 100-continue` is left to the request
   * listener, and upgrades come here.
   */
  readonly onUpgrade?: UpgradeListener;
}

/** A server of HTTP, with or without a socket of its own to listen on. */
export interface HttpServer {
  readonly server: Server;
  /** Serves a connection that was accepted elsewhere. */
  take(socket: Socket): void;
  /** Answers what was read, closes connections as they turn idle, and closes what is left after the grace (seconds). */
  finish(graceSeconds: number): Promise<void>;
}

const headersTimeout = 10_000;
const requestTimeout = 15_000;
const maxHeaderBytes = 16 * 1024;
/** Node checks its timeouts only this often; in milliseconds. */
const checkingInterval = 1000;
/** Milliseconds for what is on its way on idle connections, and from then on between looks at them. */
const drainInterval = 150;

/** What Node refuses by itself, by the code of its error. */
const parserStatuses: ReadonlyMap<string, number> = new Map([
  ['HPE_HEADER_OVERFLOW', 431],
  ['ERR_HTTP_REQUEST_TIMEOUT', 408],
  ['ERR_TLS_HANDSHAKE_TIMEOUT', 408],
]);

/** What a connection ends with if its client has gone away. */
const goneCodes: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

/** Creates the server; nothing listens yet. */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const settings = {
    maxHeaderSize: maxHeaderBytes,
    // Without a Host: the app refuses the request, with a reason in the log. Node would answer without a word.
    requireHostHeader: false,
    headersTimeout,
    requestTimeout: options.onUpgrade === undefined ? requestTimeout : 0,
    keepAliveTimeout: options.keepAlive * 1000,
    connectionsCheckingInterval: checkingInterval,
    // Node 24.10 and later: a request without a body costs no stream events; bodies are read by nobody here.
    optimizeEmptyRequests: true,
  };
  const { createTlsServer, limit, unreadTimeout = 30, firstByteTimeout = 2 } = options;
  const server = (createTlsServer ?? createServer)(settings);
  const opened = createTlsServer === undefined ? lendBytes(server) : 'connection';
  const event = createTlsServer === undefined ? opened : 'secureConnection';
  // Who has sent everything and says so still gets the answers. In streams it is how a client goes away.
  Object.assign(server, { httpAllowHalfOpen: options.onUpgrade === undefined }); // not in the types
  const owedAnswers = boundOwedAnswers(server, { unreadTimeout, event });
  const onRequest = owedAnswers.count(options.onRequest);
  server.on('request', (incoming, outgoing) => {
    endEmptyRequest(incoming);
    onRequest(incoming, outgoing);
  });
  if (options.onExpectation !== undefined) server.on('checkExpectation', owedAnswers.count(options.onExpectation));
  if (options.onUpgrade !== undefined) passStreams(server, owedAnswers, options);
  // Under TLS, those with whom an answer can be spoken.
  const secured = new WeakSet<object>();
  if (createTlsServer !== undefined) server.on('secureConnection', (socket: Socket) => secured.add(socket));
  // Size bounds the headers already; a limit on their number would drop some without a word.
  server.maxHeadersCount = 0;
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // Who goes away has sent nothing malformed.
    if (goneCodes.has(error.code ?? '')) {
      options.beforeCut?.();
      socket.destroy();
      return;
    }
    const status = parserStatuses.get(error.code ?? '') ?? 400;
    options.onMalformed?.(status);
    if (createTlsServer !== undefined && !secured.has(socket)) {
      // An answer would wait for the end of the handshake, which may never come, and so would the end of the connection.
      socket.destroy();
      return;
    }
    options.beforeCut?.();
    answerRaw(socket as Socket, status, options.errorBody); // an HTTP/1 server has no other sockets
  });
  // There is no tunnel here: without a listener Node closes the connection by itself, and would not wait either.
  server.on('connect', (_incoming, socket) => {
    options.beforeCut?.();
    socket.destroy();
  });
  const unused = watchUnused(server, opened, createTlsServer !== undefined);
  if (limit?.most !== undefined) server.maxConnections = limit.most;
  server.on('drop', () => limit?.note());
  const connections = new Set<Socket>();
  let whenNone = (): void => {};
  server.on(opened, (socket: Socket) => {
    options.onConnection?.(1);
    connections.add(socket);
    socket.once('close', () => {
      options.onConnection?.(-1);
      connections.delete(socket);
      if (connections.size === 0) whenNone();
    });
  });

  return {
    server,
    take(socket) {
      if (limit?.most !== undefined && connections.size >= limit.most) {
        limit.note();
        socket.destroy();
        return;
      }
      // As the connections that the server accepts by itself: who has sent everything still gets the answers.
      socket.allowHalfOpen = true;
      server.emit('connection', socket);
    },
    async finish(graceSeconds) {
      // Who still sends on a kept-alive connection gets an answer, the last on it.
      for (const event of ['request', 'checkContinue', 'checkExpectation']) {
        if (server.listenerCount(event) > 0) server.prependListener(event, endWith);
      }
      owedAnswers.closeAfterLast();
      // A connection turns idle only after its answer, so idle ones are looked for until all are gone; each time after
      // the sockets were read, for after a stall the timers come first, and what waits to be read would be cut off.
      const closeIdle = (): void => {
        server.closeIdleConnections();
        unused.close(firstByteTimeout);
      };
      const sweep = setInterval(() => void setImmediate().then(closeIdle), drainInterval);
      const deadline = setTimeout(() => {
        for (const socket of connections) socket.destroy();
      }, graceSeconds * 1000);
      await new Promise<void>((resolve) => {
        whenNone = resolve;
        if (connections.size === 0) resolve();
      });
      clearInterval(sweep);
      clearTimeout(deadline);
      owedAnswers.close();
    },
  };
}

/** This is the last answer on its connection. */
const endWith: RequestListener = (_incoming, outgoing) => {
  outgoing.shouldKeepAlive = false;
};

function passStreams(server: Server, owedAnswers: OwedAnswers, options: HttpServerOptions): void {
  // Without a listener Node asks for the body before anybody has judged the request.
  server.on('checkContinue', owedAnswers.count(options.onRequest));
  server.on('upgrade', (incoming, duplex, head) => {
    const socket = duplex as Socket; // an HTTP/1 server has no other sockets
    const rest = owedAnswers.release(socket);
    if (rest === undefined) {
      // Answers to earlier requests are still on their way: nothing can be put between them.
      options.beforeCut?.();
      socket.destroy();
      return;
    }
    socket.setTimeout(0);
    const outgoing = createUpgradeAnswer(incoming, socket);
    options.onUpgrade?.(incoming, outgoing, () => {
      outgoing.detachSocket(socket);
      return { socket, head: Buffer.concat([head, rest]) };
    });
  });
}

function phrase(status: number): string {
  return statusPhrases.get(status) ?? 'Error';
}

function answerRaw(socket: Socket, status: number, errorBody: ErrorBodyFormat): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const { contentType, body } = errorBody({ status, description: phrase(status) });
  socket.end(
    `HTTP/1.1 ${status} ${phrase(status)}\r\nContent-Type: ${contentType}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
