import { type ClientRequest, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { AccessError } from '../../failures.ts';
import { findFates, isTrailer } from './header-names.ts';
import { describeFailure, type Errand } from './pool-forwarding.ts';
import type { RequestHead } from './request-head.ts';
import { readTrailers } from './response-headers.ts';
import type { Upstream } from './upstream.ts';

/** Opens a request to the upstream by the client of Node. */
export function openRequest(upstream: Upstream, head: RequestHead, more: readonly string[]): ClientRequest {
  const open = upstream.isTls ? httpsRequest : httpRequest;
  const request = open({
    ...upstream.requestOptions,
    method: head.method,
    path: head.target,
    headers: [...head.headers, ...more],
  });
  // Their size is bounded; a bound on their number would drop some without a word.
  request.maxHeadersCount = 0;
  return request;
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
  const request = openRequest(upstream, head, describeFraming(head));
  let isAnswerHeld = false;

  const expire = (): void => {
    if (isAnswerHeld) {
      deadline.refresh();
      return;
    }
    const waitsForClient = !incoming.complete && !request.writableNeedDrain;
    if (waitsForClient) incoming.socket.destroy();
    else answering.fail(new AccessError('upstream_timeout'));
  };
  const deadline = setTimeout(expire, upstream.timeoutMilliseconds);
  const touch = (): void => {
    deadline.refresh();
  };

  let hasBegun = false;
  const upload = (chunk: Buffer): void => {
    touch();
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
    incoming.off('data', upload);
    incoming.off('end', finish);
  };
  answering.onAbort(() => {
    detach();
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
      detach();
      answering.end(response.rawTrailers);
      if (!request.writableFinished) request.destroy();
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
