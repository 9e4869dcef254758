import { type ClientRequest, type IncomingMessage, request as openHttp, type RequestOptions } from 'node:http';
import type { Socket } from 'node:net';
import { Refused } from '../../refused.ts';
import { findHeaderActions, isTrailer } from './header-names.ts';
import { describeFailure, type ForwardJob } from './pool-forwarding.ts';
import type { RequestHead } from './request-head.ts';
import { readTrailers } from './response-headers.ts';
import { maxResponseHeaderBytes } from './upstream.ts';
import { endsConnection, resetConnection } from './upstream-connection.ts';

/** Opens a request to the upstream with `node:http`, on the connection that `way` provides. */
export function openRequest(
  way: Pick<RequestOptions, 'agent' | 'createConnection'>,
  head: RequestHead,
  more: readonly string[],
): ClientRequest {
  const request = openHttp({
    ...way,
    maxHeaderSize: maxResponseHeaderBytes,
    method: head.method,
    path: head.target,
    headers: [...head.headers, ...more],
  });
  // Their size is limited; a limit of their number would silently drop some.
  request.maxHeadersCount = 0;
  return request;
}

/** The response in flight on each connection that is used again, or the last one. */
const responses = new WeakMap<Socket, IncomingMessage | undefined>();

/** Ends the connection of a request when a byte arrives after its response: Node before 26 drops it, and uses the connection again. */
function endOnStrayByte(request: ClientRequest): void {
  request.on('socket', (socket) => {
    // Before the parser, which would already have completed the response with this read.
    if (!responses.has(socket)) socket.prependListener('data', destroyIfStray);
    responses.set(socket, undefined);
  });
  request.on('response', (response) => responses.set(response.socket, response));
}

function destroyIfStray(this: Socket): void {
  if (responses.get(this)?.complete === true) resetConnection(this);
}

function describeFraming({ body, headers, expectsContinue }: RequestHead): readonly string[] {
  const lines = expectsContinue ? ['Expect', '100-continue'] : [];
  if (body === 'chunked') lines.push('Transfer-Encoding', 'chunked');
  else if (body !== 'none') lines.push('Content-Length', String(body));
  else if (headers.at(-2) !== 'Content-Length') lines.push('Content-Length', '0');
  return lines;
}

/** Size from which a body follows its head after {@link graceMilliseconds}: many upstreams refuse by only the length. */
const largeBody = 1024 * 1024;
const graceMilliseconds = 5;

/** Forwards a request with a body, both ways at once; with `Expect: 100-continue`, the upstream decides when the body starts. */
export function forwardByRequest({ upstream, forwarding, head, writer }: ForwardJob): void {
  const { incoming, outgoing, identity, credentials, held } = forwarding;
  const request = openRequest({ agent: upstream.agent }, head, describeFraming(head));
  endOnStrayByte(request);
  let isPaused = false;
  let isComplete = false;

  const expire = (): void => {
    if (isPaused) {
      deadline.refresh();
      return;
    }
    // The client has its own time limit.
    if (isUploading()) deadline.refresh();
    else writer.fail(new Refused('upstream_timeout'));
  };
  const isUploading = (): boolean => !incoming.complete && !request.writableNeedDrain;
  const deadline = setTimeout(expire, upstream.timeoutMilliseconds);
  const uploadDeadline = setTimeout(() => {
    if (isUploading()) writer.fail(new Refused('upload_timeout'));
    else if (!incoming.complete) uploadDeadline.refresh();
  }, upstream.uploadMilliseconds);
  const touch = (): void => {
    deadline.refresh();
  };

  let grace: NodeJS.Timeout | undefined;
  let hasBegun = false;
  const chunks: Buffer[] = [];
  const upload = (chunk: Buffer): void => {
    touch();
    uploadDeadline.refresh();
    if (chunks.push(chunk) === 1) setImmediate(sendChunks);
  };
  // After the poll phase, which has read an early response: a write to a closed connection would discard it.
  const sendChunks = (): void => {
    hasBegun = true;
    for (const chunk of chunks.splice(0)) if (!request.destroyed && !request.write(chunk)) incoming.pause();
  };
  const finish = (): void => {
    touch();
    sendChunks();
    if (head.body === 'chunked' && incoming.rawTrailers.length > 0) {
      const actions = findHeaderActions(identity.names, credentials);
      request.addTrailers(readTrailers(incoming.rawTrailers, (name) => isTrailer(name) && actions(name) === 'pass'));
    }
    request.end();
  };
  const detach = (): void => {
    held?.release();
    clearTimeout(deadline);
    clearTimeout(uploadDeadline);
    clearTimeout(grace);
    incoming.off('data', upload);
    incoming.off('end', finish);
  };
  writer.onAbort(() => {
    detach();
    // After the response, another request may have the connection.
    if (!isComplete && request.socket !== null) resetConnection(request.socket);
    request.destroy();
  });

  request.on('drain', () => {
    touch();
    incoming.resume();
  });
  request.on('continue', () => {
    touch();
    if (head.expectsContinue && !outgoing.headersSent && !writer.isOver()) outgoing.writeContinue();
  });
  request.on('information', ({ statusCode, rawHeaders }) => {
    touch();
    writer.inform(statusCode, rawHeaders);
  });
  request.on('error', (error) => writer.fail(describeFailure(error)));
  request.on('upgrade', (_response, socket) => {
    socket.destroy();
    writer.fail(new Refused('upstream_unavailable', { context: { part: 'status 101' } }));
  });
  request.on('response', (response) => {
    const { socket } = response; // null at its end
    touch();
    response.on('data', (chunk: Buffer) => {
      touch();
      if (writer.write(chunk)) return;
      isPaused = true;
      response.pause();
      outgoing.once('drain', () => {
        isPaused = false;
        touch();
        response.resume();
      });
    });
    response.on('end', () => {
      isComplete = true;
      detach();
      writer.end(response.rawTrailers);
      if (!request.writableFinished) request.destroy();
      else if (endsConnection(head.method, response.statusCode ?? 0)) resetConnection(socket);
    });
    response.on('error', (error) => writer.fail(describeFailure(error)));
    writer.begin(response.statusCode ?? 0, response.rawHeaders);
  });

  if (head.body === 'none') {
    request.end();
    return;
  }
  const begin = (): void => void incoming.on('data', upload).on('end', finish);
  if (held !== undefined && held.chunks.length > 0) {
    chunks.push(...held.chunks);
    request.once('finish', () => held.release());
    setImmediate(() => {
      if (writer.isOver()) return;
      if (incoming.readableEnded) {
        finish();
        return;
      }
      sendChunks();
      begin();
      if (!request.writableNeedDrain) incoming.resume();
    });
    return;
  }
  if (typeof head.body === 'number' && head.body > largeBody) {
    request.flushHeaders();
    grace = setTimeout(begin, graceMilliseconds);
    return;
  }
  begin();
  // The head is sent with the first chunk of the body if that has arrived.
  setImmediate(() => {
    if (chunks.length > 0) sendChunks();
    else if (!hasBegun && !writer.isOver()) request.flushHeaders();
  });
}
