import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { AccessError } from '../../failures.ts';
import type { Forwarding } from './forwarding.ts';
import { describeFailure, type Errand } from './pool-forwarding.ts';
import { openRequest } from './request-forwarding.ts';
import type { RequestHead } from './request-head.ts';
import { readAnswerHeaders } from './response-headers.ts';

/** RFC 6455 §1.3. */
const webSocketId = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const keyGrammar = /^[\w+/]{22}==$/;

/**
 * Whether a request asks for a WebSocket. Other protocols are not passed on: behind `Upgrade: h2c` requests would go
 * by without being judged.
 */
export function isWebSocketRequest({ incoming, takeSocket }: Forwarding, head: RequestHead): boolean {
  const { upgrade, 'sec-websocket-key': key } = incoming.headers;
  return (
    takeSocket !== undefined &&
    upgrade?.toLowerCase() === 'websocket' &&
    head.method === 'GET' &&
    head.body === 'none' &&
    incoming.httpVersion === '1.1' &&
    typeof key === 'string' &&
    keyGrammar.test(key)
  );
}

/** Forwards a request for a WebSocket; an answer other than 101 is passed on like any other. */
export function forwardUpgrade({ upstream, forwarding, head, answering }: Errand): void {
  const { incoming, outgoing, takeSocket } = forwarding;
  const lines = ['Connection', 'Upgrade', 'Upgrade', 'websocket'];
  const request = openRequest({ createConnection: upstream.open }, head, lines);
  const deadline = setTimeout(() => answering.fail(new AccessError('upstream_timeout')), upstream.timeoutMilliseconds);
  let other: Duplex | undefined;
  answering.onAbort(() => {
    clearTimeout(deadline);
    request.destroy();
    other?.destroy();
  });
  request.on('error', (error) => answering.fail(describeFailure(error)));
  request.on('response', (response) => {
    clearTimeout(deadline);
    answering.begin(response.statusCode ?? 0, response.rawHeaders);
    response.on('data', (chunk: Buffer) => {
      if (answering.write(chunk)) return;
      response.pause();
      outgoing.once('drain', () => response.resume());
    });
    response.on('end', () => answering.end(response.rawTrailers));
    response.on('error', (error) => answering.fail(describeFailure(error)));
  });
  request.on('upgrade', (response, socket, rest) => {
    clearTimeout(deadline);
    other = socket;
    if (answering.isOver() || takeSocket === undefined) {
      socket.destroy();
      return;
    }
    if (!isAgreed(response, String(incoming.headers['sec-websocket-key']))) {
      answering.fail(new AccessError('upstream_unavailable', { context: { part: 'WebSocket handshake' } }));
      socket.destroy();
      return;
    }
    answering.handOver();
    outgoing.statusCode = 101;
    const taken = takeSocket();
    taken.socket.write(formatHead(response, outgoing.getHeaders()));
    join(taken, { socket, head: rest });
  });
  request.end();
}

/** Only who has understood the request can know this: another 101 would open a way past the gate. */
function isAgreed({ statusCode, headers }: IncomingMessage, key: string): boolean {
  const accept = createHash('sha1').update(`${key}${webSocketId}`).digest('base64');
  return (
    statusCode === 101 && headers.upgrade?.toLowerCase() === 'websocket' && headers['sec-websocket-accept'] === accept
  );
}

function formatHead({ rawHeaders }: IncomingMessage, ours: NodeJS.Dict<number | string | string[]>): string {
  const headers = readAnswerHeaders(rawHeaders) ?? [];
  let text = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';
  for (const [name, value] of Object.entries(ours)) text += `${name}: ${String(value)}\r\n`;
  for (let i = 0; i < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${text}\r\n`;
}

interface End {
  readonly socket: Duplex;
  /** Read, and not yet passed on. */
  readonly head: Buffer;
}

function join(client: End, upstream: End): void {
  for (const [from, to] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    if (from.head.length > 0) to.socket.write(from.head);
    from.socket.pipe(to.socket);
    from.socket.on('error', () => to.socket.destroy());
    from.socket.on('close', () => to.socket.destroy());
  }
}
