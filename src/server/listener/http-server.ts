import { createServer, IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createNetServer, type Server as NetServer, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { type ErrorBodyFormat, statusPhrases } from '../../core/refusal/error-body.ts';
import { maxHeaderBytes } from '../http/exchange.ts';
import { ClientConnection } from './client-connection.ts';
import type { ConnectionLimit } from './connection-limit.ts';
import { createIntake, type PeerOptions, type PeerUse } from './intake.ts';
import type { CreateTlsServer } from './open-tls.ts';
import { offersWebSocket, serveUpgrades, type UpgradeListener } from './upgrades.ts';

export interface HttpServerOptions {
  readonly onRequest: RequestListener;
  /** Seconds until an idle connection is closed. */
  readonly keepAlive: number;
  /** Form of the bodies for malformed requests, which do not reach the app. */
  readonly errorBody: ErrorBodyFormat;
  /** Header with a copy of these bodies. Default: none. */
  readonly bodyHeader?: string | undefined;
  readonly onMalformed?: (status: number, error: NodeJS.ErrnoException, peer: string | undefined) => void;
  /** Called for each connection that is opened (1) or closed (-1). */
  readonly onConnection?: (change: 1 | -1) => void;
  /** Creates the server that accepts connections. Default: one without TLS. */
  readonly createTlsServer?: CreateTlsServer | undefined;
  /** Maximum number of open connections. Default: no limit. */
  readonly limit?: ConnectionLimit;
  /** The part of each limit that one peer may take. Default: the entire limit. */
  readonly peers?: PeerOptions;
  /** Seconds after which a connection is closed if its client has taken no byte of a response. Default: 30. */
  readonly unreadTimeout?: number;
  /** Seconds after which an idle tunnel is closed. Default: 3600. */
  readonly tunnelTimeout?: number;
  /** Seconds that a new connection has for its first byte once the server ends. Default 2. */
  readonly firstByteTimeout?: number;
  /**
   * Responds to an `Expect` other than `100-continue` (RFC 9110 §10.1.1); the app then handles `100-continue`. Default: 417,
   * without a log line, and Node handles `100-continue`.
   */
  readonly onExpectation?: RequestListener;
  /** Makes this a server of streams: a body has no time limit while it moves. */
  readonly onUpgrade?: UpgradeListener;
}

const headersTimeout = 10_000;
const requestTimeout = 15_000;
/** Bytes of a socket's buffer: a read that fills it is the last one until the buffer is empty. */
const socketBuffer = 1024;
/** Milliseconds between two checks of Node's timeouts. */
const checkingInterval = 1000;
/** Milliseconds for what is in flight on idle connections, and afterwards between two sweeps. */
const drainInterval = 150;

/** Status by the code of Node's error. Default: 400. */
const parserStatuses: ReadonlyMap<string, number> = new Map([
  ['HPE_HEADER_OVERFLOW', 431],
  ['ERR_HTTP_REQUEST_TIMEOUT', 408],
  ['ERR_TLS_HANDSHAKE_TIMEOUT', 408],
]);

const goneCodes: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

/** Creates the server; nothing listens yet. */
export function createHttpServer(options: HttpServerOptions) {
  const { createTlsServer, limit, unreadTimeout = 30, firstByteTimeout = 2 } = options;
  const settings = {
    IncomingMessage: ListenerRequest,
    maxHeaderSize: maxHeaderBytes,
    // Without a Host the app refuses the request, with a reason in the log.
    requireHostHeader: false,
    headersTimeout,
    requestTimeout: options.onUpgrade === undefined ? requestTimeout : 0,
    keepAliveTimeout: options.keepAlive * 1000,
    connectionsCheckingInterval: checkingInterval,
    // Node 24.9 and later: any other request for an upgrade is read as if it had none.
    shouldUpgradeCallback: (incoming: IncomingMessage) => options.onUpgrade !== undefined && offersWebSocket(incoming),
    // Node 24.10 and later: a request without a body costs no stream events.
    optimizeEmptyRequests: true,
  };
  const server = createServer(settings);
  const acceptor: NetServer = (createTlsServer ?? createNetServer)({
    noDelay: true,
    // A client that ends its side still gets its responses. In a TLS handshake its end would not be noticed.
    allowHalfOpen: createTlsServer === undefined,
    highWaterMark: socketBuffer,
  });
  const intake = createIntake(options.peers);
  const sockets = new Set<Socket>();
  const clients = new Set<ClientConnection>();
  /** Connections in their TLS handshake, by client: Node reports its end with another socket. Clients of a unix socket have no names. */
  const handshakes = new Map<string, { readonly socket: Socket; readonly peer: PeerUse; readonly openedAt: number }>();
  let whenNone = (): void => {};

  const serve = (socket: Socket, peer: PeerUse): void => {
    const client = new ClientConnection(socket, {
      intake,
      peer,
      halfClosed: options.onUpgrade === undefined ? 'respond' : 'cancel',
    });
    clients.add(client);
    client.once('close', () => clients.delete(client));
    server.emit('connection', client);
  };

  acceptor.on('connection', (socket: Socket) => {
    const { remoteAddress } = socket;
    const peer = intake.enter(remoteAddress);
    const most = limit?.most ?? Number.POSITIVE_INFINITY;
    if (sockets.size >= most || peer.connections > intake.partOf(most, peer)) {
      intake.leave(remoteAddress);
      limit?.note();
      socket.destroy();
      return;
    }
    intake.noteArrival();
    options.onConnection?.(1);
    sockets.add(socket);
    const client = nameClient(socket);
    socket.once('close', () => {
      options.onConnection?.(-1);
      intake.leave(remoteAddress);
      sockets.delete(socket);
      handshakes.delete(client);
      if (sockets.size === 0) whenNone();
    });
    if (createTlsServer === undefined) serve(socket, peer);
    else if (remoteAddress !== undefined) handshakes.set(client, { socket, peer, openedAt: performance.now() });
  });
  if (createTlsServer !== undefined) {
    acceptor.on('secureConnection', (socket: Socket) => {
      const client = nameClient(socket);
      const handshake = handshakes.get(client);
      handshakes.delete(client);
      socket.allowHalfOpen = true;
      // Only a unix socket has no local address; the client of another one has reset the connection.
      if (handshake === undefined && socket.localAddress !== undefined) socket.destroy();
      else serve(socket, handshake?.peer ?? intake.find(undefined));
    });
    acceptor.on('tlsClientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      if (!goneCodes.has(error.code ?? '')) options.onMalformed?.(statusOf(error), error, socket.remoteAddress);
      // A response would wait for the end of the handshake, which may never come.
      socket.destroy();
    });
  }

  const count =
    (listener: RequestListener): RequestListener =>
    (incoming, outgoing) => {
      const client = toClient(incoming.socket);
      // Node continues to parse the bytes that it has read.
      if (client.destroyed) return;
      client.begin(incoming, outgoing);
      listener(incoming, outgoing);
    };
  server.on('request', count(options.onRequest));
  const { onRequest, onExpectation = refuseExpectation } = options;
  // Without a listener Node responds itself, and the response is not counted as pending.
  server.on('checkExpectation', count(onExpectation));
  if (options.onExpectation !== undefined) {
    // Without a listener Node requests the body before the request is authorized.
    const check: RequestListener = (incoming, outgoing) =>
      (/^100-continue$/i.test(incoming.headers.expect ?? '') ? onRequest : onExpectation)(incoming, outgoing);
    server.on('checkContinue', count(check));
  }
  if (options.onUpgrade !== undefined) {
    serveUpgrades(server, {
      ...{ onUpgrade: options.onUpgrade, unreadTimeout, tunnelTimeout: options.tunnelTimeout ?? 3600 },
      serveAgain: (socket) => serve(socket, intake.find(socket.remoteAddress)),
    });
  }
  // Size bounds the headers already; a limit on their number would drop some silently.
  server.maxHeadersCount = 0;
  // A socket reports the timeout after one to two times its value if the client takes no byte.
  const progressTimeout = (unreadTimeout * 1000) / 2;
  server.setTimeout(progressTimeout, (socket) => {
    const client = toClient(socket);
    const isIdle = !client.isWaiting && client.writableLength === 0;
    // What only waits for its turn was written in this iteration: the client has not left it unread.
    const isStuck = client.socket.writableLength > 0 && client.idle >= progressTimeout;
    // A client that does not end its side after the last response is not awaited.
    if (isIdle || isStuck || client.writableFinished) client.destroy();
    else client.setTimeout(progressTimeout);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // A client that disconnects has sent nothing malformed.
    if (goneCodes.has(error.code ?? '')) return void socket.destroy();
    const status = statusOf(error);
    const respond = (): void => respondRaw(socket as Socket, status, options); // an HTTP/1 server has no other
    const { remoteAddress } = toClient(socket).socket;
    if (toClient(socket).breakOff(respond)) options.onMalformed?.(status, error, remoteAddress);
  });
  // Without a listener Node closes the connection itself, before the pending response is sent.
  server.on('connect', (_incoming, socket) => {
    const client = toClient(socket);
    client.breakOff(() => client.destroySoon());
  });
  // The checks of the timeouts begin with this event, and this server never listens.
  server.emit('listening');

  /** Closes connections that are idle, and those without a first byte after the time limit. */
  const closeIdle = (): void => {
    const latest = performance.now() - firstByteTimeout * 1000;
    for (const client of clients) {
      if (client.isIdle && (client.socket.bytesRead > 0 || client.openedAt <= latest)) client.destroy();
    }
    for (const { socket, openedAt } of handshakes.values()) if (openedAt <= latest) socket.destroy();
  };

  return {
    /** Accepts connections once it listens. */
    acceptor,
    /** Responds to what was read, closes connections as they turn idle, and closes what is left after the grace (seconds). */
    async finish(graceSeconds: number): Promise<void> {
      // A client that still sends on a kept-alive connection gets a response, the last one.
      for (const event of ['request', 'checkContinue', 'checkExpectation']) {
        if (server.listenerCount(event) > 0) server.prependListener(event, endConnection);
      }
      for (const client of clients) client.closeAfterLast();
      // A connection turns idle only after its response, so idle ones are closed until none is left; each time after
      // the sockets were read, because after a stall the timers precede the reads.
      const sweep = setInterval(() => void setImmediate().then(closeIdle), drainInterval);
      const deadline = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, graceSeconds * 1000);
      await new Promise<void>((resolve) => {
        whenNone = resolve;
        if (sockets.size === 0) resolve();
      });
      clearInterval(sweep);
      clearTimeout(deadline);
      server.close();
    },
  };
}

/** A request. Once it is complete and without a reader, its stream need not end: that takes longer than parsing it. */
class ListenerRequest extends IncomingMessage {
  /** Called by Node too, after the response. */
  override resume(): this {
    const isRead = this.listenerCount('data') + this.listenerCount('end') > 0;
    return isRead || !this.complete || this.readableLength > 0 ? super.resume() : this;
  }
}

function nameClient({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function toClient(socket: object): ClientConnection {
  return socket as ClientConnection; // `serve` created it
}

/** Makes a response the last one of its connection, unless bytes follow that were read already. */
const endConnection: RequestListener = (incoming, outgoing) => {
  if (!toClient(incoming.socket).hasMore) outgoing.shouldKeepAlive = false;
};

const refuseExpectation: RequestListener = (_incoming, outgoing) => void outgoing.writeHead(417).end();

function statusOf({ code }: NodeJS.ErrnoException): number {
  return parserStatuses.get(code ?? '') ?? 400;
}

function respondRaw(socket: Socket, status: number, { errorBody, bodyHeader }: HttpServerOptions): void {
  if (!socket.writable) return void socket.destroy();
  const phrase = statusPhrases.get(status) ?? 'Error';
  const { contentType, body } = errorBody({ status, description: phrase });
  const copied = bodyHeader === undefined ? '' : `${bodyHeader}: ${body}\r\n`;
  socket.end(
    `HTTP/1.1 ${status} ${phrase}\r\nContent-Type: ${contentType}\r\n${copied}` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
