import type { IncomingMessage, ServerResponse } from 'node:http';
import { AccessError } from '../failures.ts';
import type { Forwarding } from './reverse-proxy-forwarding.ts';
import { isTrailer } from './reverse-proxy-names.ts';

/** The answer to one forwarded request, whichever client brings it. */
export interface Answering {
  /** Whether nothing more can be sent: it is finished, refused, cut off, or the client has gone. */
  isOver(): boolean;
  /** Called once if the answer is over before the upstream has finished: the client went, or something was wrong. */
  onAbort(abort: () => void): void;
  /** Passes on 103; others are between two neighbours only. */
  inform(status: number, rawHeaders: readonly string[]): void;
  begin(status: number, rawHeaders: readonly string[]): void;
  /** Whether more may follow at once; else when the answer drains. */
  write(chunk: Buffer): boolean;
  end(rawTrailers: readonly string[]): void;
  /** Refuses if nothing was sent yet, else closes the connection of the client, so that the cut is seen. */
  fail(error: AccessError): void;
  /** The connection speaks another protocol from now on. */
  handOver(): void;
}

/** What a client may still send of a body that nobody wants: then its connection can be used again. */
const maxDiscardedBytes = 1024 * 1024;
const maxDiscardMilliseconds = 2000;

const hopByHop: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'te', 'upgrade', 'proxy-authenticate'],
  'proxy-authentication-info',
]);

/** Begins an answer; `leave` is called once, when its connection is done with it. */
export function createAnswering(forwarding: Forwarding, leave: () => void): Answering {
  const { incoming, outgoing } = forwarding;
  let over = false;
  let left = false;
  let wrote = false;
  let abort: (() => void) | undefined;
  const stop = (): void => {
    over = true;
    const callback = abort;
    abort = undefined;
    callback?.();
  };
  const close = (): void => {
    if (left) return;
    left = true;
    leave();
    stop();
  };
  outgoing.once('close', close);
  // An answer that waits for those before it has no socket yet, and is not told when the connection closes.
  if (outgoing.socket === null) incoming.socket.setMaxListeners(0).once('close', close);
  if (incoming.socket.destroyed) close();

  const flush = (): void => {
    if (!wrote && !over) outgoing.flushHeaders();
  };
  const fail = (error: AccessError): void => {
    if (over) return;
    stop();
    if (!outgoing.headersSent) {
      for (const name of outgoing.getHeaderNames()) outgoing.removeHeader(name);
      forwarding.refuse(error);
      discardRest(incoming);
      return;
    }
    forwarding.onCut?.(error);
    // To a client of HTTP/1.0 the end of the connection is the end of the body: a reset is not.
    if (incoming.httpVersionMinor === 0) outgoing.socket?.resetAndDestroy();
    else outgoing.destroy();
  };

  return {
    isOver: () => over,
    onAbort(callback) {
      if (over) callback();
      else abort = callback;
    },
    inform(status, rawHeaders) {
      if (status !== 103 || over || outgoing.headersSent || incoming.httpVersionMinor === 0) return;
      const link = rawHeaders.flatMap((name, i) =>
        i % 2 === 0 && name.toLowerCase() === 'link' ? [rawHeaders[i + 1] ?? ''] : [],
      );
      try {
        if (link.length > 0) outgoing.writeEarlyHints({ link });
      } catch {
        // Node knows fewer forms of Link than RFC 8288 has; hints can be left out.
      }
    },
    begin(status, rawHeaders) {
      if (over) return;
      const headers = readAnswerHeaders(rawHeaders);
      if (headers === undefined) {
        fail(new AccessError('upstream_unavailable', { context: { part: 'Transfer-Encoding' } }));
        return;
      }
      try {
        writeHead(outgoing, status, headers);
      } catch (cause) {
        fail(new AccessError('upstream_unavailable', { cause }));
        return;
      }
      // The first part of the body mostly comes with the head, and then leaves with it.
      process.nextTick(flush);
    },
    write(chunk) {
      wrote = true;
      return over || outgoing.write(chunk);
    },
    end(rawTrailers) {
      if (over) return;
      over = true;
      if (rawTrailers.length > 0 && outgoing.chunkedEncoding) outgoing.addTrailers(readTrailers(rawTrailers));
      outgoing.end();
      discardRest(incoming);
    },
    fail,
    handOver() {
      over = true;
    },
  };
}

/** Headers that were set before stay, in the place of those with their names. */
function writeHead(outgoing: ServerResponse, status: number, headers: string[]): void {
  const ours = outgoing.getHeaderNames();
  if (ours.length === 0) {
    outgoing.writeHead(status, headers);
    return;
  }
  // Given together with a list, they would make one of each two headers of a name.
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (!ours.includes(name.toLowerCase())) outgoing.appendHeader(name, headers[i + 1] ?? '');
  }
  outgoing.writeHead(status);
}

/** The headers of an answer for the next hop; `undefined` if its body has a coding that cannot be passed on. */
export function readAnswerHeaders(rawHeaders: readonly string[]): string[] | undefined {
  const headers: string[] = [];
  let named: Set<string> | undefined;
  let isChunked = false;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = rawHeaders[i + 1] ?? '';
    const lower = name.toLowerCase();
    if (!hopByHop.has(lower)) headers.push(name, value);
    else if (lower === 'connection') {
      for (const option of value.toLowerCase().split(',')) {
        const trimmed = option.trim();
        if (trimmed !== 'keep-alive' && trimmed !== 'close') named = (named ?? new Set()).add(trimmed);
      }
    } else if (lower === 'transfer-encoding') {
      if (isChunked || value.toLowerCase() !== 'chunked') return undefined;
      isChunked = true;
    }
  }
  if (named === undefined && !isChunked) return headers;
  return headers.filter((_, i) => {
    const name = (headers[i - (i % 2)] ?? '').toLowerCase();
    if (name === 'content-length') return !isChunked;
    return named?.has(name) !== true;
  });
}

/** Those trailers that may stand behind a body. */
export function readTrailers(
  rawTrailers: readonly string[],
  may: (name: string) => boolean = isTrailer,
): [string, string][] {
  const trailers: [string, string][] = [];
  for (let i = 0; i < rawTrailers.length; i += 2) {
    const name = rawTrailers[i] ?? '';
    if (may(name)) trailers.push([name, rawTrailers[i + 1] ?? '']);
  }
  return trailers;
}

/**
 * Reads what is left of a body, within bounds, when its answer was sent before its end: closed at once, the connection
 * would be reset, and the client could lose the answer.
 */
export function discardRest(incoming: IncomingMessage): void {
  if (incoming.complete || incoming.destroyed) return;
  const { socket } = incoming;
  let left = maxDiscardedBytes;
  const deadline = setTimeout(() => socket.destroy(), maxDiscardMilliseconds);
  const done = (): void => clearTimeout(deadline);
  incoming.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) socket.destroy();
  });
  incoming.once('end', done).once('close', done).resume();
}
