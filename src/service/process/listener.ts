import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { type ErrorBodyFormat, statusPhrases } from '../../refusal/error-body.ts';
import { boundOwedAnswers, type OwedAnswers } from './owed-answers.ts';
import { createUpgradeAnswer } from './upgrade-answer.ts';

/** The connection of a client, for another protocol from now on, and what it has sent of that. */
export interface TakenSocket {
  readonly socket: Socket;
  readonly head: Buffer;
}

/** A request that asks for an upgrade: it is answered, or its connection is taken. */
export type UpgradeListener = (incoming: IncomingMessage, outgoing: ServerResponse, take: () => TakenSocket) => void;

/** How one listener is set up. */
export interface ListenerOptions {
  readonly onRequest: RequestListener;
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** Seconds that an idle connection is kept. */
  readonly keepAlive: number;
  /** Form of the bodies for requests that are not HTTP enough to reach the app. */
  readonly errorBody: ErrorBodyFormat;
  /** Told of each such request, with the status it got. */
  readonly onMalformed?: (status: number) => void;
  /** Called before a connection is closed in the middle: requests along it may have answers that are not yet sent. */
  readonly beforeCut?: () => void;
  /** Seconds without a byte of an answer taken, after which a connection is closed. Default 30. */
  readonly unreadTimeout?: number;
  /**
   * Makes this a listener for streams: a body may take as long as it moves, `Expect: 100-continue` is left to the
   * request listener, and upgrades come here.
   */
  readonly onUpgrade?: UpgradeListener;
}

/** A listener that is open. */
export interface Listener {
  readonly url: string;
  /** Stops accepting, finishes what was accepted, and closes what is left after the grace (seconds). */
  close(graceSeconds: number): Promise<void>;
}

const headersTimeout = 10_000;
const requestTimeout = 15_000;
const maxHeaderBytes = 16 * 1024;
/** Node checks its timeouts only this often; in milliseconds. */
const checkingInterval = 1000;
/** Milliseconds for what is on its way on idle connections, and from then on between looks at them. */
const drainInterval = 150;
/** The backlog of a listener of Node, and no more: others go on to come. */
const maxWaiting = 511;

/** What Node's HTTP parser refuses by itself, by the code of its error. */
const parserStatuses: ReadonlyMap<string, number> = new Map([
  ['HPE_HEADER_OVERFLOW', 431],
  ['ERR_HTTP_REQUEST_TIMEOUT', 408],
]);

/** Opens a listener. Rejects with Node's own error where the address cannot be had. */
export async function listen(options: ListenerOptions): Promise<Listener> {
  const settings = {
    maxHeaderSize: maxHeaderBytes,
    headersTimeout,
    requestTimeout: options.onUpgrade === undefined ? requestTimeout : 0,
    keepAliveTimeout: options.keepAlive * 1000,
    connectionsCheckingInterval: checkingInterval,
    // Node 24.10 and later: a request without a body costs no stream events; bodies are read by nobody here.
    optimizeEmptyRequests: true,
  };
  const server = createServer(settings);
  const upgraded = new Set<Socket>();
  const owedAnswers = boundOwedAnswers(server, { unreadTimeout: options.unreadTimeout ?? 30 });
  server.on('request', owedAnswers.count(options.onRequest));
  if (options.onUpgrade !== undefined) passStreams(server, { ...options, owedAnswers, upgraded });
  // Size bounds the headers already; a limit on their number would drop some without a word.
  server.maxHeadersCount = 0;
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const status = parserStatuses.get(error.code ?? '') ?? 400;
    options.onMalformed?.(status);
    options.beforeCut?.();
    answerRaw(socket as Socket, status, options.errorBody); // an HTTP/1 server has no other sockets
  });
  // There is no tunnel here: without a listener Node closes the connection by itself, and would not wait either.
  server.on('connect', (_incoming, socket) => {
    options.beforeCut?.();
    socket.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  return {
    url: formatUrl(server.address() as AddressInfo),
    close: (grace) => closeServer(server, { owedAnswers, upgraded, grace }),
  }; // TCP always
}

interface StreamOptions extends ListenerOptions {
  readonly owedAnswers: OwedAnswers;
  /** Node no longer knows of them. */
  readonly upgraded: Set<Socket>;
}

function passStreams(server: Server, { onRequest, onUpgrade, beforeCut, owedAnswers, upgraded }: StreamOptions): void {
  // Without a listener Node asks for the body before anybody has judged the request.
  server.on('checkContinue', owedAnswers.count(onRequest));
  server.on('upgrade', (incoming, duplex, head) => {
    const socket = duplex as Socket; // an HTTP/1 server has no other sockets
    const rest = owedAnswers.release(socket);
    if (rest === undefined) {
      // Answers to earlier requests are still on their way: nothing can be put between them.
      beforeCut?.();
      socket.destroy();
      return;
    }
    socket.setTimeout(0);
    upgraded.add(socket);
    socket.once('close', () => upgraded.delete(socket));
    const outgoing = createUpgradeAnswer(incoming, socket);
    onUpgrade?.(incoming, outgoing, () => {
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

function formatUrl({ address, family, port }: AddressInfo): string {
  const host = address === '0.0.0.0' || address === '::' ? 'localhost' : address;
  return `http://${family === 'IPv6' && host !== 'localhost' ? `[${host}]` : host}:${port}`;
}

/** Connections that the system has already made for us would be reset with the listener. Node accepts one a turn. */
async function acceptWaiting(server: Server): Promise<void> {
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

interface Closing {
  readonly owedAnswers: OwedAnswers;
  readonly upgraded: ReadonlySet<Socket>;
  /** Seconds. */
  readonly grace: number;
}

async function closeServer(server: Server, { owedAnswers, upgraded, grace }: Closing): Promise<void> {
  await acceptWaiting(server);
  // That of HTTP would cut idle connections at once, with what has come on them and is not yet read.
  const { close } = server instanceof NetServer ? NetServer.prototype : server;
  const closed = new Promise<void>((resolve) => {
    close.call(server, () => resolve());
  });
  // Who still sends on a kept-alive connection gets an answer, the last on it.
  server.prependListener('request', (_incoming, outgoing) => {
    outgoing.shouldKeepAlive = false;
  });
  // A connection turns idle only after its answer, so idle ones are looked for until all are gone; each time after the
  // sockets were read, for after a stall the timers come first, and what waits to be read would be cut off.
  const sweep = setInterval(() => void setImmediate().then(() => server.closeIdleConnections()), drainInterval);
  const deadline = setTimeout(() => {
    server.closeAllConnections();
    for (const socket of upgraded) socket.destroy();
  }, grace * 1000);
  await closed;
  clearInterval(sweep);
  clearTimeout(deadline);
  owedAnswers.close();
}
