import { once } from 'node:events';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer, type ServerOpts, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { afterAll, expect, onTestFinished, vi } from 'vitest';
import { readNodeRequest } from '../../src/adapters/node-request.ts';
import type { AccessError } from '../../src/core/failures.ts';
import { createReadExternalUrl } from '../../src/core/http/external-url.ts';
import { namePeer } from '../../src/core/http/peer-name.ts';
import { errorBodyFormats } from '../../src/core/refusal/error-body.ts';
import { createDescribeRefusal } from '../../src/core/refusal/refusal.ts';
import { Refused } from '../../src/core/refused.ts';
import { createExamine, type Forwarding } from '../../src/gate/proxy/request-head.ts';
import { createReverseProxy, type ReverseProxyOptions } from '../../src/gate/proxy/reverse-proxy.ts';
import { type Listener, listen } from '../../src/server/listener/listener.ts';

/** An upstream of bytes: it notes what arrives, and answers as it is told. */
export interface RawUpstream {
  readonly url: string;
  /** What arrived, one text for each connection, in the order of connections. */
  readonly arrivals: readonly string[];
  readonly sockets: ReadonlySet<Socket>;
  close(): Promise<void>;
}

/** Answers what has arrived on a connection so far; called for each piece. */
export type Respond = (socket: Socket, arrived: string) => void;

export const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** Answers each request head with 200. */
export const answerHeads = (): Respond => {
  const answered = new WeakMap<Socket, number>();
  return (socket, arrived) => {
    const heads = arrived.split('\r\n\r\n').length - 1;
    const before = answered.get(socket) ?? 0;
    if (heads > before) {
      answered.set(socket, heads);
      socket.write(ok);
    }
  };
};

export async function startRawUpstream(respond: Respond, options: ServerOpts = {}): Promise<RawUpstream> {
  const arrivals: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer(options, (socket) => {
    const place = arrivals.push('') - 1;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (chunk) => {
      arrivals[place] += chunk.toString('latin1');
      respond(socket, arrivals[place] ?? '');
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo; // a TCP server that listens has an address of this shape
  return {
    url: `http://127.0.0.1:${port}`,
    arrivals,
    sockets,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A proxy behind the listener of the gate. */
export interface Proxied {
  readonly port: number;
  readonly proxy: Awaited<ReturnType<typeof createReverseProxy>>;
  /** Reasons of refusals, in their order. */
  readonly refused: string[];
  readonly cut: string[];
  close(): Promise<void>;
}

export interface ProxiedOptions extends Partial<ReverseProxyOptions> {
  readonly upstream: string;
  readonly identity?: Forwarding['identity'];
  readonly credentials?: Forwarding['credentials'];
  readonly isPeerTrusted?: boolean;
  readonly responseHeaders?: Forwarding['responseHeaders'];
  readonly prefersUpstreamCors?: boolean;
  readonly rule?: Forwarding['rule'];
  readonly unreadTimeout?: number;
  /** Called for each request before it is forwarded; it may answer by itself and return `true`. */
  readonly before?: ((incoming: IncomingMessage, outgoing: ServerResponse) => boolean) | undefined;
}

/** Seconds. */
const keepAlive = 5;

const noIdentity: Forwarding['identity'] = { names: [], values: [] };

export async function startProxied(options: ProxiedOptions): Promise<Proxied> {
  const {
    identity = noIdentity,
    credentials = 'remove',
    isPeerTrusted = false,
    responseHeaders = [],
    prefersUpstreamCors = false,
    rule = { stripPrefix: '', strippedSegments: 0 },
    unreadTimeout,
    tunnelTimeout = 3600,
    before,
    ...rest
  } = options;
  const usual = { timeout: 60, uploadTimeout: 60, share: 1, tls: {}, onHead() {}, onReachable() {} };
  const proxy = await createReverseProxy({ ...usual, tunnelTimeout, ...rest });
  const examine = createExamine();
  const readExternalUrl = createReadExternalUrl({ trust: 'none' });
  const describe = createDescribeRefusal({
    challenge: { style: 'full', mode: 'off', realm: 'api', proofAlgorithms: [] },
    errorBody: errorBodyFormats.detail,
    insufficientScopeStatus: 403,
    readExternalUrl,
    issueNonce: () => undefined,
  });
  const refused: string[] = [];
  const cut: string[] = [];
  const handle = (incoming: IncomingMessage, outgoing: ServerResponse, takeSocket?: Forwarding['takeSocket']): void => {
    const request = readNodeRequest(incoming);
    const refuse = (error: AccessError): void => {
      refused.push(error.reason);
      const { status, headers, body } = describe(error, request, {});
      outgoing.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) });
      outgoing.end(body);
    };
    const framing = examine(incoming, outgoing);
    if (framing instanceof Refused) {
      refuse(framing);
      return;
    }
    if (before?.(incoming, outgoing) === true) return;
    const externalUrl = readExternalUrl(request, incoming.socket);
    if (externalUrl instanceof Refused) {
      refuse(externalUrl);
      return;
    }
    const onCut: Forwarding['onCut'] = ({ reason }) => void cut.push(reason);
    proxy.forward(
      {
        ...{ incoming, outgoing, takeSocket, identity, externalUrl, isPeerTrusted, credentials, rule },
        ...{ responseHeaders, prefersUpstreamCors, refuse, onCut, requestId: 'request-1' },
        client: namePeer(request.headers.get('x-client') ?? undefined),
      },
      framing,
    );
  };
  const onRequest: RequestListener = (incoming, outgoing) => handle(incoming, outgoing);
  const listener: Listener = await listen({
    onRequest,
    onUpgrade: handle,
    onExpectation: (_incoming, outgoing) => outgoing.writeHead(417).end(),
    host: '127.0.0.1',
    port: 0,
    keepAlive,
    errorBody: errorBodyFormats.detail,
    ...(unreadTimeout !== undefined && { unreadTimeout }),
    tunnelTimeout,
  });
  return {
    port: Number(new URL(listener.url).port),
    proxy,
    refused,
    cut,
    async close() {
      proxy.close();
      await listener.close(0);
    },
  };
}

/** Closes a part at the end of the test, the last one first. */
export function keep<T extends { close(): Promise<void> }>(one: T): T {
  onTestFinished(() => one.close());
  return one;
}

/** An upstream and a proxy before it, until the end of the test. */
export async function stage(respond: Respond, options: Partial<ProxiedOptions> = {}) {
  const upstream = keep(await startRawUpstream(respond));
  return { upstream, proxied: keep(await startProxied({ upstream: upstream.url, ...options })) };
}

/** Writes as much as a connection takes, until it ends. Returns the reader of the number of bytes. */
export function flood(socket: Socket, chunk: Buffer | string, most = Number.POSITIVE_INFINITY): () => number {
  let sent = 0;
  const write = (): void => {
    while (!socket.destroyed && sent < most && socket.write(chunk)) sent += chunk.length;
  };
  socket.on('drain', write);
  write();
  return () => sent;
}

/** An upstream that sends pieces, each in its own event-loop iteration, and a proxy before it, for the tests of a file. */
export async function usePieces(options: Partial<ProxiedOptions> = {}) {
  let pieces: readonly string[] = [];
  const upstream = await startRawUpstream(async (socket, arrived) => {
    if (!arrived.endsWith('\r\n\r\n') && !arrived.endsWith('hello')) return;
    const sent = pieces;
    socket.setNoDelay();
    for (const [i, piece] of sent.entries()) {
      if (i > 0) await setImmediate();
      socket.write(Buffer.from(piece, 'latin1'));
    }
    if (!/^HTTP\/1\.1 (?:204|304)|content-length|transfer-encoding/im.test(sent.join(''))) socket.end();
  });
  const proxied = await startProxied({ upstream: upstream.url, ...options });
  afterAll(async () => {
    await proxied.close();
    await upstream.close();
  });
  /** Sends a request; the upstream responds with these pieces. */
  const receive = (request: string, response: readonly string[]): Promise<string> => {
    pieces = response;
    return sendRaw(proxied.port, request);
  };
  return { proxied, receive };
}

/** Waits until an assertion holds. */
export const soon = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: 20_000, interval: 5 });

/** Waits until the proxy has no request in flight, and the upstream no connection. */
export const areGone = ({
  upstream,
  proxied,
}: Readonly<Record<'upstream', RawUpstream> & Record<'proxied', Proxied>>) =>
  soon(() => expect([upstream.sockets.size, proxied.proxy.inFlight()]).toEqual([0, 0]));

/** Opens a connection, and sends bytes as they are. What comes back stays unread. */
export function open(port: number, bytes: string | Buffer = '', options: object = {}): Socket {
  const socket = connect({ port, host: '127.0.0.1', ...options }).on('error', () => {});
  socket.setEncoding('latin1').write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  return socket;
}

/** Sends bytes, and reads until the proxy closes the connection. */
export const sendRaw = (port: number, bytes: string | Buffer): Promise<string> => text(open(port, bytes));

/** Like {@link sendRaw} until so many answers have come, then closes the connection. */
export async function sendRawFor(port: number, bytes: string, isEnough: (answer: string) => boolean): Promise<string> {
  const socket = open(port, bytes);
  let answer = '';
  for await (const chunk of socket) {
    answer += String(chunk);
    if (isEnough(answer)) break;
  }
  socket.destroy();
  return answer;
}
