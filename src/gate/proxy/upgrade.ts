import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Refused } from '../../core/refused.ts';
import type { TunnelEnd } from '../../server/http/exchange.ts';
import { formatLines, mergeHeaders, readResponseHeaders } from './headers.ts';
import { openRequest, relayResponse } from './request-forwarding.ts';
import type { Forwarding } from './request-head.ts';
import { describeFailure, type ForwardJob } from './upstream.ts';

/** RFC 6455 §1.3. */
const webSocketId = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** Forwards a request for a WebSocket. A response other than 101 is forwarded unchanged. */
export function forwardUpgrade({ upstream, forwarding, head, writer }: ForwardJob): void {
  const { incoming, outgoing, takeSocket } = forwarding;
  const lines = ['Connection', 'Upgrade', 'Upgrade', 'websocket'];
  const request = openRequest({ createConnection: upstream.open }, head, lines);
  writer.limit();
  let other: Socket | undefined;
  writer.onAbort(() => {
    request.destroy();
    other?.destroy();
  });
  request.on('error', (error) => writer.fail(describeFailure(error)));
  request.on('response', (response) => {
    response.on('end', () => writer.end(response.rawTrailers));
    relayResponse(response, writer);
  });
  request.on('upgrade', (response, stream, head) => {
    const socket = stream as Socket; // the upstream's `open` returned it
    if (writer.isOver() || takeSocket === undefined) return void socket.destroy();
    other = socket;
    if (!isAgreed(response, String(incoming.headers['sec-websocket-key']))) {
      return void writer.fail(new Refused('upstream_unavailable', { context: { part: 'WebSocket handshake' } }));
    }
    const stop = forwarding.followToken?.(() => {
      client.socket.destroy();
      socket.destroy();
    });
    if (stop instanceof Refused) return void writer.fail(stop);
    writer.handOver();
    outgoing.statusCode = 101;
    const client = takeSocket(socket);
    if (stop !== undefined) client.socket.once('close', stop);
    client.socket.write(formatHead(response, forwarding), 'latin1');
    pipe(client, socket);
    pipe({ socket, head }, client.socket);
  });
  request.end();
}

/** Checks the handshake, because any other 101 would open a tunnel past the gate. */
function isAgreed({ statusCode, headers }: IncomingMessage, key: string): boolean {
  const accept = createHash('sha1').update(`${key}${webSocketId}`).digest('base64');
  return (
    statusCode === 101 && headers.upgrade?.toLowerCase() === 'websocket' && headers['sec-websocket-accept'] === accept
  );
}

function formatHead({ rawHeaders }: IncomingMessage, { responseHeaders, replaced }: Forwarding): string {
  // A browser that offered only its token requires that the response selects one of what it offered.
  const isTokenOnly = replaced?.get('sec-websocket-protocol') === '';
  const ours = isTokenOnly ? [...responseHeaders, 'Sec-WebSocket-Protocol', 'bearer'] : responseHeaders;
  const headers = mergeHeaders(readResponseHeaders(rawHeaders, false) ?? [], ours, false);
  const line = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';
  return `${line}${formatLines(headers)}\r\n`;
}

/** Milliseconds that the other side of a tunnel has to close, once one side has and its last bytes were sent. */
const lingerMilliseconds = 1000;

/** Forwards one direction of a tunnel. A side that has ended or failed ends the other one. */
function pipe({ socket, head }: TunnelEnd, to: Socket): void {
  if (head.length > 0) to.write(head);
  socket.pipe(to);
  to.once('finish', () => {
    const deadline = setTimeout(() => to.destroy(), lingerMilliseconds);
    to.once('close', () => clearTimeout(deadline));
  });
  socket.on('error', () => to.destroy());
  socket.on('close', () => {
    // After an end, `to` still sends what it has; unread bytes would reset it.
    if (socket.readableEnded) to.resume();
    else to.destroy();
  });
}
