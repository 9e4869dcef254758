import { type ClientRequest, type IncomingMessage, request as openHttp, type RequestOptions } from 'node:http';
import type { Socket } from 'node:net';
import { Refused } from '../../core/refused.ts';
import { createDeadline } from './deadline.ts';
import { endsConnection, findHeaderActions, readTrailers } from './headers.ts';
import type { RequestHead } from './request-head.ts';
import type { ResponseWriter } from './response.ts';
import {
  describeFailure,
  type ForwardJob,
  maxResponseHeaderBytes,
  mayRepeat,
  repeatable,
  resetConnection,
} from './upstream.ts';

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

/** Describes the end of the body. Only an explicit length of 0 is already in the head. */
function describeFraming({ method, body, headers, expectsContinue }: RequestHead): readonly string[] {
  const lines = expectsContinue ? ['Expect', '100-continue'] : [];
  if (body === 'chunked') lines.push('Transfer-Encoding', 'chunked');
  else if (body !== 'none') lines.push('Content-Length', String(body));
  else if (headers.at(-2) !== 'Content-Length' && !repeatable.has(method)) lines.push('Content-Length', '0');
  return lines;
}

/** Forwards a request with a body, or on the client's own connection, both ways at once; with `Expect: 100-continue`, the upstream decides when the body starts. */
export function forwardByRequest(job: ForwardJob): void {
  const { upstream, forwarding, head, writer, ownAgent } = job;
  const { incoming, outgoing, held } = forwarding;
  const request = openRequest({ agent: ownAgent ?? upstream.agent }, head, describeFraming(head));
  endOnStrayByte(request);
  let isComplete = false;
  const isUploading = (): boolean => !incoming.complete && !request.writableNeedDrain;
  writer.limit(isUploading);
  const uploadDeadline = createDeadline(upstream.uploadMilliseconds, () => {
    if (isUploading()) writer.fail(new Refused('upload_timeout'));
    else if (!incoming.complete) uploadDeadline.refresh();
  });

  request.on('drain', () => {
    writer.noteProgress();
    incoming.resume();
  });
  request.on('continue', () => {
    writer.noteProgress();
    if (head.expectsContinue && !outgoing.headersSent && !writer.isOver()) outgoing.writeContinue();
  });
  request.on('information', ({ statusCode, rawHeaders }) => {
    writer.noteProgress();
    writer.inform(statusCode, rawHeaders);
  });
  let earlierBytes = 0;
  request.on('socket', ({ bytesRead }) => {
    earlierBytes = bytesRead;
  });
  request.on('error', (error) => {
    const isUnanswered = request.reusedSocket && request.socket?.bytesRead === earlierBytes;
    if (!isUnanswered || !mayRepeat(job, error)) return void writer.fail(describeFailure(error));
    detach();
    forwardByRequest({ ...job, isRepeated: true });
  });
  request.on('upgrade', (_response, socket) => {
    socket.destroy();
    writer.fail(new Refused('upstream_unavailable', { context: { part: 'status 101' } }));
  });
  request.on('response', (response) => {
    const { socket } = response; // null at its end
    const isOffered = job.ownConnections.noteOffer(incoming.socket, response.rawHeaders);
    const endsWithResponse = isOffered || endsConnection(head.method, response.statusCode ?? 0);
    response.on('end', () => {
      isComplete = true;
      detach();
      writer.end(response.rawTrailers);
      if (!request.writableFinished) request.destroy();
      else if (endsWithResponse && ownAgent === undefined) resetConnection(socket);
    });
    relayResponse(response, writer);
  });

  let stopUpload: (() => void) | undefined;
  const detach = (): void => {
    held?.release();
    uploadDeadline.clear();
    stopUpload?.();
  };
  writer.onAbort(() => {
    detach();
    // After the response, another request may have the connection.
    if (!isComplete && request.socket !== null) resetConnection(request.socket);
    request.destroy();
  });
  if (writer.isOver()) return;
  stopUpload = forwardBody(request, job, () => {
    writer.noteProgress();
    uploadDeadline.refresh();
  });
}

/** Forwards the head and body of a response. The caller listens to its end. */
export function relayResponse(response: IncomingMessage, writer: ResponseWriter): void {
  const resume = (): void => void response.resume();
  response.on('data', (chunk: Buffer) => {
    if (!writer.write(chunk, resume)) response.pause();
  });
  response.on('error', (error) => writer.fail(describeFailure(error)));
  writer.begin(response.statusCode ?? 0, response.rawHeaders);
}

/** Size from which a body follows its head after {@link graceMilliseconds}: many upstreams refuse by only the length. */
const largeBody = 1024 * 1024;
const graceMilliseconds = 5;

/** Starts to forward the body. Returns the function that stops it. */
function forwardBody(
  request: ClientRequest,
  { forwarding, head, writer }: ForwardJob,
  onProgress: () => void,
): () => void {
  const { incoming, identity, credentials, held } = forwarding;
  const chunks: Buffer[] = [];
  let grace: NodeJS.Timeout | undefined;
  let hasBegun = false;
  const upload = (chunk: Buffer): void => {
    onProgress();
    if (chunks.push(chunk) === 1) setImmediate(sendChunks);
  };
  // After the poll phase, which has read an early response: a write to a closed connection would discard it.
  const sendChunks = (): void => {
    hasBegun = true;
    for (const chunk of chunks.splice(0)) if (!request.destroyed && !request.write(chunk)) incoming.pause();
  };
  const finish = (): void => {
    onProgress();
    sendChunks();
    if (head.body === 'chunked' && incoming.rawTrailers.length > 0) {
      request.addTrailers(readTrailers(incoming.rawTrailers, findHeaderActions(identity.names, credentials)));
    }
    request.end();
  };
  const begin = (): void => void incoming.on('data', upload).on('end', finish);

  if (head.body === 'none') request.end();
  else if (held !== undefined && held.chunks.length > 0) {
    chunks.push(...held.chunks);
    request.once('finish', () => held.release());
    setImmediate(() => {
      if (writer.isOver()) return;
      if (incoming.readableEnded) return finish();
      sendChunks();
      begin();
      if (!request.writableNeedDrain) incoming.resume();
    });
  } else if (typeof head.body === 'number' && head.body > largeBody) {
    request.write('', 'latin1');
    grace = setTimeout(begin, graceMilliseconds);
  } else {
    begin();
    // The head is sent with the first chunk of the body if that has arrived.
    setImmediate(() => {
      if (chunks.length > 0) sendChunks();
      else if (!hasBegun && !writer.isOver()) request.write('', 'latin1');
    });
  }
  return () => {
    clearTimeout(grace);
    incoming.off('data', upload);
    incoming.off('end', finish);
  };
}
