import { type ClientRequest, type IncomingMessage, request as openHttp, type RequestOptions } from 'node:http';
import type { Socket } from 'node:net';
import { AccessError } from '../../failures.ts';
import { findFates, isTrailer } from './header-names.ts';
import { describeFailure, type Errand } from './pool-forwarding.ts';
import type { RequestHead } from './request-head.ts';
import { readTrailers } from './response-headers.ts';
import { maxAnswerHeaderBytes } from './upstream.ts';
import { endsConnection, resetConnection } from './upstream-connection.ts';

/** Opens a request to the upstream by the client of Node, on the connection that `way` gives. */
export function openRequest(
  way: Pick<RequestOptions, 'agent' | 'createConnection'>,
  head: RequestHead,
  more: readonly string[],
): ClientRequest {
  const request = openHttp({
    ...way,
    maxHeaderSize: maxAnswerHeaderBytes,
    method: head.method,
    path: head.target,
    headers: [...head.headers, ...more],
  });
  // Their size is bounded; a bound on their number would drop some without a word.
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

/** Forwards a request with a body, both ways at once; with `Expect: 100-continue`, the upstream says when to go on. */
export function forwardByRequest({ upstream, forwarding, head, answering }: Errand): void {
  const { incoming, outgoing, identity, credentials } = forwarding;
  const request = openRequest({ agent: upstream.agent }, head, describeFraming(head));
  endOnStrayByte(request);
  let isAnswerHeld = false;
  let isComplete = false;

  const expire = (): void => {
    if (isAnswerHeld) {
      deadline.refresh();
      return;
    }
    // The client has its own time limit.
    if (isUploading()) deadline.refresh();
    else answering.fail(new AccessError('upstream_timeout'));
  };
  const isUploading = (): boolean => !incoming.complete && !request.writableNeedDrain;
  const deadline = setTimeout(expire, upstream.timeoutMilliseconds);
  const uploadDeadline = setTimeout(() => {
    if (isUploading()) answering.fail(new AccessError('upload_timeout'));
    else if (!incoming.complete) uploadDeadline.refresh();
  }, upstream.uploadMilliseconds);
  const touch = (): void => {
    deadline.refresh();
  };

  let hasBegun = false;
  const upload = (chunk: Buffer): void => {
    touch();
    uploadDeadline.refresh();
    hasBegun = true;
    if (!request.write(chunk)) incoming.pause();
  };
  const finish = (): void => {
    touch();
    if (head.body === 'chunked' && incoming.rawTrailers.length > 0) {
      const fates = findFates(identity.names, credentials);
      request.addTrailers(readTrailers(incoming.rawTrailers, (name) => isTrailer(name) && fates(name) === 'pass'));
    }
    request.end();
  };
  const detach = (): void => {
    clearTimeout(deadline);
    clearTimeout(uploadDeadline);
    incoming.off('data', upload);
    incoming.off('end', finish);
  };
  answering.onAbort(() => {
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
    if (head.expectsContinue && !outgoing.headersSent && !answering.isOver()) outgoing.writeContinue();
  });
  request.on('information', ({ statusCode, rawHeaders }) => {
    touch();
    answering.inform(statusCode, rawHeaders);
  });
  request.on('error', (error) => answering.fail(describeFailure(error)));
  request.on('upgrade', (_response, socket) => {
    socket.destroy();
    answering.fail(new AccessError('upstream_unavailable', { context: { part: 'status 101' } }));
  });
  request.on('response', (response) => {
    const { socket } = response; // null at its end
    touch();
    response.on('data', (chunk: Buffer) => {
      touch();
      if (answering.write(chunk)) return;
      isAnswerHeld = true;
      response.pause();
      outgoing.once('drain', () => {
        isAnswerHeld = false;
        touch();
        response.resume();
      });
    });
    response.on('end', () => {
      isComplete = true;
      detach();
      answering.end(response.rawTrailers);
      if (!request.writableFinished) request.destroy();
      else if (endsConnection(head.method, response.statusCode ?? 0)) resetConnection(socket);
    });
    response.on('error', (error) => answering.fail(describeFailure(error)));
    answering.begin(response.statusCode ?? 0, response.rawHeaders);
  });

  if (head.body === 'none') {
    request.end();
    return;
  }
  incoming.on('data', upload).on('end', finish);
  // The head leaves with the first part of the body, if that is here already.
  setImmediate(() => {
    if (!hasBegun && !answering.isOver()) request.flushHeaders();
  });
}
