import type { IncomingMessage } from 'node:http';
import { Refused } from '../../refused.ts';
import { Answer, type AnswerBatch, createAnswerBatch, type HeaderList } from '../../server/http/answer.ts';
import type { TrySendWhole } from '../../server/http/whole-answer.ts';
import { hasName, mergeHeaders, readResponseHeaders, readTrailers } from './headers.ts';
import type { Forwarding } from './request-head.ts';

export interface ResponseWriterOptions {
  readonly batch: AnswerBatch<ResponseWriter>;
  /** Sends a complete response in one piece. `undefined` where that is not possible. */
  readonly trySendWhole: TrySendWhole | undefined;
  /** Called with the seconds from the request to the head of the upstream's response. */
  readonly onHead: (seconds: number) => void;
  /** Called once for each response, when its connection has finished it. */
  readonly leave: (forwarding: Forwarding) => void;
}

export function createResponseBatch(): AnswerBatch<ResponseWriter> {
  return createAnswerBatch((responses) => {
    for (const response of responses) response.send();
  });
}

/** Maximum size of a body that is sent as one string with its head: one system call and one copy. */
const maxTextBytes = 8192;

/**
 * Writes the response to one forwarded request. A class, because one exists per request and closures would cost more than
 * its steps.
 */
export class ResponseWriter {
  readonly #forwarding: Forwarding;
  readonly #options: ResponseWriterOptions;
  readonly #startedAt = performance.now();
  #over = false;
  #left = false;
  /** True once the connection has received a part. */
  #flushed = false;
  #head: { readonly status: number; readonly headers: HeaderList } | undefined;
  /** First chunk of the body, which is sent with the head, and with the end if that has arrived. */
  #held: Buffer | undefined;
  /** The response, if it is complete and small. */
  #answer: Answer | undefined;
  #abort: ((error?: Error) => void) | undefined;
  /** Removes listeners from the connection, which may live long. */
  readonly #forget: (() => void) | undefined;

  constructor(forwarding: Forwarding, options: ResponseWriterOptions) {
    this.#forwarding = forwarding;
    this.#options = options;
    const { incoming, outgoing } = forwarding;
    const close = (): void => this.#close();
    outgoing.on('close', close);
    // A pending response has no socket yet, and gets no event when the connection closes.
    if (outgoing.socket === null) {
      incoming.socket.setMaxListeners(0).on('close', close);
      this.#forget = () => incoming.socket.off('close', close);
    }
    if (incoming.socket.destroyed) this.#close();
  }

  /** Reports whether the response is over: finished, refused, aborted, or the client disconnected. */
  isOver(): boolean {
    return this.#over;
  }

  /** Sets the function to call once if the response is over before the upstream has finished. */
  onAbort(abort: () => void): void {
    if (this.#over) abort();
    else this.#abort = abort;
  }

  /**
   * Forwards 103; other informational responses are for one hop. Not while earlier responses are pending: Node would put
   * the head of the response before it.
   */
  inform(status: number, rawHeaders: readonly string[]): void {
    const { incoming, outgoing } = this.#forwarding;
    if (status !== 103 || this.#over || outgoing.headersSent || incoming.httpVersionMinor === 0) return;
    if (outgoing.socket === null) return;
    const link = rawHeaders.flatMap((name, i) =>
      i % 2 === 0 && name.toLowerCase() === 'link' ? [rawHeaders[i + 1] ?? ''] : [],
    );
    try {
      if (link.length > 0) outgoing.writeEarlyHints({ link });
    } catch {
      // Node supports fewer forms of Link than RFC 8288; hints are optional.
    }
  }

  begin(status: number, rawHeaders: readonly string[]): void {
    if (this.#over) return;
    this.#options.onHead((performance.now() - this.#startedAt) / 1000);
    const { method, httpVersionMinor } = this.#forwarding.incoming;
    const headers = readResponseHeaders(rawHeaders, method !== 'HEAD' && httpVersionMinor > 0);
    if (headers === undefined) {
      this.fail(new Refused('upstream_unavailable', { context: { part: 'Transfer-Encoding' } }));
      return;
    }
    const { responseHeaders = [], prefersUpstreamCors = false } = this.#forwarding;
    this.#head = { status, headers: mergeHeaders(headers, responseHeaders, prefersUpstreamCors) };
    // Most responses arrive complete, so nothing is sent before the event-loop iteration ends.
    process.nextTick(() => this.#flush());
  }

  /** Returns false if the next chunk must await `drain`. */
  write(chunk: Buffer): boolean {
    if (this.#over) return true;
    if (!this.#flushed && this.#held === undefined) {
      this.#held = chunk;
      return true;
    }
    this.#flush();
    return this.#over || this.#forwarding.outgoing.write(chunk);
  }

  /** Writes the head. Returns false if it is not valid: the response has failed. */
  #writeHead(): boolean {
    if (this.#head === undefined) return true;
    const { status, headers } = this.#head;
    const { outgoing } = this.#forwarding;
    this.#head = undefined;
    try {
      outgoing.writeHead(status, headers as string[]); // Node only reads them
      return true;
    } catch (cause) {
      this.fail(new Refused('upstream_unavailable', { cause }));
      return false;
    }
  }

  #flush(): void {
    if (this.#over || this.#flushed || !this.#writeHead()) return;
    this.#flushed = true;
    const { outgoing } = this.#forwarding;
    // An empty piece, because `flushHeaders` writes values of the head as UTF-8.
    outgoing.write(this.#held === undefined ? '' : this.#asFirst(this.#held), 'latin1');
    this.#held = undefined;
  }

  /** While earlier responses are pending, Node puts the head before a 100 that waits with it if the first piece is a buffer. */
  #asFirst(piece: Buffer): Buffer | string {
    return this.#forwarding.outgoing.socket === null ? piece.toString('latin1') : piece;
  }

  end(rawTrailers: readonly string[]): void {
    if (this.#over || !this.#prepare()) return;
    this.#over = true;
    const { incoming, outgoing } = this.#forwarding;
    if (rawTrailers.length > 0 && outgoing.chunkedEncoding) outgoing.addTrailers(readTrailers(rawTrailers));
    if (this.#flushed) outgoing.end();
    else this.#options.batch.add(this);
    discardRest(incoming);
  }

  /** Prepares a complete response. Returns false if its head is not valid. */
  #prepare(): boolean {
    const head = this.#head;
    const isSmall = (this.#held?.length ?? 0) <= maxTextBytes;
    if (
      head !== undefined &&
      isSmall &&
      this.#options.trySendWhole !== undefined &&
      hasName(head.headers, 'content-length')
    ) {
      const answer = new Answer(head.status, head.headers, this.#held?.toString('latin1') ?? '', true);
      if (hasValidHead(answer)) this.#answer = answer;
    }
    return this.#answer !== undefined || this.#writeHead();
  }

  send(): void {
    const { outgoing } = this.#forwarding;
    if (this.#answer !== undefined && this.#options.trySendWhole?.(this.#answer, outgoing) === true) return;
    if (!this.#writeHead()) return void outgoing.destroy();
    const held = this.#held;
    if (held === undefined) outgoing.end();
    else outgoing.end(this.#asFirst(held), 'latin1');
  }

  /** Refuses if nothing was sent yet; otherwise closes the client's connection, so that the client sees the abort. */
  fail(error: Refused): void {
    if (this.#over) return;
    this.#stop();
    const forwarding = this.#forwarding;
    const { incoming, outgoing } = forwarding;
    if (!outgoing.headersSent) {
      forwarding.refuse(error);
      discardRest(incoming);
      return;
    }
    forwarding.onCut?.(error);
    // To an HTTP/1.0 client, the end of the connection is the end of the body, but a reset is not.
    if (incoming.httpVersionMinor === 0) incoming.socket.resetAndDestroy();
    // A pending response has no socket, and Node 24 and later do not destroy the socket that it gets.
    else if (outgoing.socket === null) incoming.socket.destroy();
    else outgoing.destroy();
  }

  /** Marks the response as over: the connection now has another protocol. */
  handOver(): void {
    this.#over = true;
  }

  #stop(): void {
    this.#over = true;
    const abort = this.#abort;
    this.#abort = undefined;
    abort?.();
  }

  #close(): void {
    if (this.#left) return;
    this.#left = true;
    this.#forget?.();
    this.#options.leave(this.#forwarding);
    this.#stop();
  }
}

function hasValidHead(answer: Answer): boolean {
  try {
    return answer.head !== '';
  } catch {
    return false;
  }
}

/** Maximum size of the rest of a body that is discarded: many clients read the response only after they have sent the body. */
const maxDiscardedBytes = 64 * 1024 * 1024;
/** The time limit of a client that takes no byte. */
const maxDiscardMilliseconds = 30_000;

/**
 * Discards the rest of a body, within limits, after its response was sent early. An immediate close would reset the
 * connection, and the client could lose the response.
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
