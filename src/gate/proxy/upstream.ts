import { Agent, type AgentOptions } from 'node:http';
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type SecureContextOptions } from 'node:tls';
import type { Client } from 'undici';
import { Refused } from '../../core/refused.ts';
import { codeOf } from '../../core/shown-text.ts';
import { parseUpstream, type UpstreamAddress } from '../../server/settings/upstream-address.ts';
import type { UpstreamEntry } from '../match/rules.ts';
import { createDeadline } from './deadline.ts';
import { hasHeader } from './headers.ts';
import type { Forwarding, RequestHead } from './request-head.ts';
import type { ResponseWriter } from './response.ts';

export interface UpstreamOptions {
  readonly upstream: string;
  /** Seconds for the upstream to accept a connection, to start its response, and between two chunks. */
  readonly timeout: number;
  /** Seconds without a byte of an upload until 408. */
  readonly uploadTimeout: number;
  readonly tls: UpstreamTls;
  /** Called if a connection succeeds after one that failed (without a cause), or fails after one that succeeded. */
  readonly onReachable: (cause: Error | undefined) => void;
}

/** Settings of an `https://` upstream, with PEM; `ca` replaces the roots of Node. */
export interface UpstreamTls
  extends Pick<SecureContextOptions, 'ca' | 'cert' | 'key'>,
    Pick<UpstreamEntry, 'serverName'> {}

export type Upstream = Awaited<ReturnType<typeof openUpstream>>;

/** A request in flight to an upstream. */
export interface ForwardJob {
  readonly upstream: Upstream;
  readonly forwarding: Forwarding;
  readonly head: RequestHead;
  readonly writer: ResponseWriter;
  readonly ownConnections: { noteOffer(socket: Socket, rawHeaders: readonly string[]): boolean };
  /** The client's own connection; absent if the request may share one. */
  readonly ownAgent: Agent | undefined;
  /** True if the request was sent before, on a connection that had closed. */
  readonly isRepeated?: boolean;
}

/** Milliseconds that an idle connection is kept without a hint of the upstream; most servers keep it for 5 s or longer. */
const idleMilliseconds = 4000;
const maxIdleMilliseconds = 60_000;
/** Maximum size of response headers, in bytes. */
export const maxResponseHeaderBytes = 64 * 1024;

/** Loads the client and creates the pools; opens no connection. */
export async function openUpstream(options: UpstreamOptions) {
  const address = parseUpstream(options.upstream);
  const timeoutMilliseconds = options.timeout * 1000;
  const connectTo = createConnect(address, options.tls);
  let isReachable = true;
  const note = (cause?: Error): void => {
    const before = isReachable;
    isReachable = cause === undefined;
    if (isReachable !== before) options.onReachable(cause);
  };
  const connected = address.isTls ? 'secureConnect' : 'connect';
  /** Opens a connection; its TLS handshake may still be in flight. */
  const open = (): Socket => {
    const socket = connectTo();
    let isOpen = false;
    socket.on('error', (error) => {
      // An upstream refuses a client certificate after the handshake (RFC 8446 §4.4.2).
      if (!isOpen || codeOf(error).startsWith('ERR_SSL_')) note(error);
    });
    socket.once(connected, () => {
      isOpen = true;
      if (!address.isTls) note();
    });
    return socket;
  };
  const awaitConnected = (socket: Socket): Promise<void> => awaitOpen(socket, connected, timeoutMilliseconds);
  const pool = await createPool(open, awaitConnected, {
    pipelining: 1,
    headersTimeout: timeoutMilliseconds,
    bodyTimeout: 0, // the writer of the response has its limit
    keepAliveTimeout: idleMilliseconds,
    keepAliveMaxTimeout: maxIdleMilliseconds,
    maxHeaderSize: maxResponseHeaderBytes,
  });
  const createAgent = (limits: AgentOptions): Agent => {
    const agent = new Agent({ keepAlive: true, scheduling: 'lifo', ...limits });
    agent.createConnection = open;
    return agent;
  };
  /** Client for bodies with trailers and `Expect: 100-continue`, which the pool does not support. */
  const agent = createAgent({ timeout: idleMilliseconds });
  return {
    ...{ open, pool, agent, timeoutMilliseconds },
    /** Creates the client of one connection that is not shared. It stays idle without a limit. */
    createOwnAgent: () => createAgent({ maxSockets: 1 }),
    uploadMilliseconds: options.uploadTimeout * 1000,
    /** Opens and closes one connection, to find out if the upstream is reachable. */
    probe(): void {
      const socket = open();
      awaitConnected(socket).then(
        () => socket.destroy(),
        () => {},
      );
    },
    /** Result of the last connection; true before the first. */
    isReachable: () => isReachable,
    /** Called for each response: only then is a connection over TLS surely accepted. */
    noteResponse(): void {
      if (!isReachable) note();
    },
    close(): void {
      agent.destroy();
      pool.close();
    },
  };
}

/** Resolves once the connection, and its TLS session, is open, which the event reports. */
function awaitOpen(socket: Socket, event: 'connect' | 'secureConnect', milliseconds: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const late = Object.assign(new Error('The upstream has not accepted the connection.'), { code: 'ETIMEDOUT' });
    const deadline = createDeadline(milliseconds, () => socket.destroy(late));
    socket.once(event, () => {
      deadline.clear();
      resolve();
    });
    socket.on('error', reject);
    // The only event if it was discarded before.
    socket.once('close', () => {
      deadline.clear();
      reject(new Error('The connection was closed.'));
    });
  });
}

/** TCP connections below TLS: only these can be reset. */
const carriers = new WeakMap<Socket, Socket>();

/** Creates the function that opens connections to one upstream. */
function createConnect(
  { isTls, hostname, port, socketPath }: UpstreamAddress,
  { serverName = hostname, ...material }: UpstreamTls,
): () => Socket {
  const place = socketPath === undefined ? { host: hostname, port } : { path: socketPath };
  const options = { ...place, noDelay: true, keepAlive: true, highWaterMark: 64 * 1024 };
  if (!isTls) return () => connect(options);
  const secureContext = createSecureContext(material);
  // The name in the certificate is the upstream's, not the Host of the client.
  const peer = isIP(serverName) === 0 ? { host: serverName, servername: serverName } : { host: serverName };
  let session: Buffer | undefined;
  return () => {
    const carrier = connect(options);
    const socket = connectTls({ ...peer, socket: carrier, secureContext, session, ALPNProtocols: ['http/1.1'] });
    socket.on('session', (latest) => {
      session = latest;
    });
    carriers.set(socket, carrier);
    return socket;
  };
}

/** Resets a connection: after an orderly close its local port stays unusable for a minute, and ports would run out. */
export function resetConnection(socket: Socket): void {
  const carrier = carriers.get(socket) ?? socket;
  // A unix socket has no address, and cannot be reset.
  if (carrier.remoteAddress === undefined) socket.destroy();
  else carrier.resetAndDestroy();
}

export function describeFailure(cause: Error): Refused {
  const code = codeOf(cause);
  if (code === 'UND_ERR_INVALID_ARG' || code === 'ERR_INVALID_CHAR') return new Refused('unexpected', { cause });
  const isLate = code === 'ETIMEDOUT' || /^UND_ERR_(?:CONNECT|HEADERS|BODY)_TIMEOUT$/.test(code);
  return new Refused(isLate ? 'upstream_timeout' : 'upstream_unavailable', { cause });
}

/** Safe methods: a request without a body has the same effect if it is sent once more. */
export const repeatable: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

/** Reports whether a request may be sent once more after its reused connection closed. A proof is valid once. */
export function mayRepeat({ head, writer, isRepeated }: ForwardJob, error: Error): boolean {
  return (
    isRepeated !== true &&
    head.body === 'none' &&
    repeatable.has(head.method) &&
    !writer.isOver() &&
    !hasHeader(head.headers, 'dpop') &&
    describeFailure(error).reason === 'upstream_unavailable'
  );
}

/** A client of undici, which has at most one connection and one request at a time. */
export interface PooledClient {
  readonly client: Client;
  /** Its connection, or the last one; absent before the first. */
  socket?: Socket;
  /** Reader of its response. */
  handler?: { drain(): void; receive(chunk: Buffer): void } | undefined;
}

/** Hides the one error that undici treats as the end of a response without a length. */
function hideReset(error: NodeJS.ErrnoException): void {
  if (error.code === 'ECONNRESET') error.code = 'ECONNABORTED';
}

/** Creates the clients for requests without a body, the fastest. */
async function createPool(open: () => Socket, awaitOpen: (socket: Socket) => Promise<void>, options: Client.Options) {
  const { Client } = await import('undici');
  const all = new Set<PooledClient>();
  /** The last one is taken first, so that those that are not needed close when idle for long. */
  const idle: PooledClient[] = [];

  /** Returns a client without a connection. */
  const create = (): PooledClient => {
    const pooled: PooledClient = {
      // Always http: with https, undici opens another connection for each Host.
      client: new Client('http://upstream', {
        ...options,
        connect(_, done) {
          const socket = open();
          pooled.socket = socket;
          // Both before the listeners of undici: the end of a connection whose response is paused would fail an assertion
          // there, and end the process.
          socket.on('end', () => pooled.handler?.drain());
          socket.on('error', hideReset);
          const read = socket.read.bind(socket);
          socket.read = (size) => {
            const chunk: Buffer | null = read(size);
            if (chunk !== null) pooled.handler?.receive(chunk);
            return chunk;
          };
          awaitOpen(socket).then(
            () => done(null, socket),
            (error: Error) => done(error, null),
          );
        },
      }),
    };
    all.add(pooled);
    return pooled;
  };

  const discard = (pooled: PooledClient): void => {
    all.delete(pooled);
    void pooled.client.destroy();
  };

  return {
    take: () => idle.pop() ?? create(),
    create,
    release: (pooled: PooledClient) => void idle.push(pooled),
    /** Ends a client whose response is over, and resets its connection; the response must not be paused. */
    reset(pooled: PooledClient): void {
      if (pooled.socket !== undefined) resetConnection(pooled.socket);
      discard(pooled);
    },
    discard,
    /** Ends every client. A request that was being decided meanwhile gets a new one. */
    close(): void {
      for (const pooled of all) discard(pooled);
      idle.length = 0;
    },
  };
}
