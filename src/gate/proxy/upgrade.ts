import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { Refused } from '../../refused.ts';
import type { HeaderList } from '../../server/http/answer.ts';
import { mergeHeaders, readResponseHeaders } from './headers.ts';
import { openRequest, relayResponse } from './request-forwarding.ts';
import { describeFailure, type ForwardJob } from './upstream.ts';

/** RFC 6455 §1.3. */
const webSocketId = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** Forwards a request for a WebSocket. A response other than 101 is forwarded unchanged. */
export function forwardUpgrade({ upstream, forwarding, head, writer }: ForwardJob): void {
  const { incoming, outgoing, takeSocket } = forwarding;
  const lines = ['Connection', 'Upgrade', 'Upgrade', 'websocket'];
  const request = openRequest({ createConnection: upstream.open }, head, lines);
  const deadline = setTimeout(() => writer.fail(new Refused('upstream_timeout')), upstream.timeoutMilliseconds);
  let other: Duplex | undefined;
  writer.onAbort(() => {
    clearTimeout(deadline);
    request.destroy();
    other?.destroy();
  });
  request.on('error', (error) => writer.fail(describeFailure(error)));
  request.on('response', (response) => {
    clearTimeout(deadline);
    response.on('end', () => writer.end(response.rawTrailers));
    relayResponse(response, { outgoing, writer });
  });
  request.on('upgrade', (response, socket, rest) => {
    clearTimeout(deadline);
    other = socket;
    if (writer.isOver() || takeSocket === undefined) {
      socket.destroy();
      return;
    }
    if (!isAgreed(response, String(incoming.headers['sec-websocket-key']))) {
      writer.fail(new Refused('upstream_unavailable', { context: { part: 'WebSocket handshake' } }));
      socket.destroy();
      return;
    }
    writer.handOver();
    outgoing.statusCode = 101;
    const taken = takeSocket();
    taken.socket.write(formatHead(response, forwarding.responseHeaders ?? []), 'latin1');
    pipe(taken, socket);
    pipe({ socket, head: rest }, taken.socket);
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

function formatHead({ rawHeaders }: IncomingMessage, ours: HeaderList): string {
  const headers = mergeHeaders(readResponseHeaders(rawHeaders, false) ?? [], ours, false);
  let text = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';
  for (let i = 0; i < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${text}\r\n`;
}

interface End {
  readonly socket: Duplex;
  /** Bytes read, but not yet forwarded. */
  readonly head: Buffer;
}

function pipe({ socket, head }: End, to: Duplex): void {
  if (head.length > 0) to.write(head);
  socket.pipe(to);
  socket.on('error', () => to.destroy());
  socket.on('close', () => to.destroy());
}
