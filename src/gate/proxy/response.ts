import type { ServerResponse } from 'node:http';
import { AccessError } from '../../failures.ts';
import type { AnswerBatch } from '../../server/http/answer-batch.ts';
import { discardRest } from './discard.ts';
import type { Forwarding } from './forwarding.ts';
import { readAnswerHeaders, readTrailers } from './response-headers.ts';

/** What all answers of one proxy have in common. */
export interface AnsweringOptions {
  /** Where an answer waits that came whole. */
  readonly batch: AnswerBatch<Answering>;
  /** Called once for each answer, when its connection is done with it. */
  readonly leave: (forwarding: Forwarding) => void;
}

/** Up to so many bytes a body is sent as one text with its head: one system call, and one copy. */
const maxTextBytes = 8192;

/**
 * The answer to one forwarded request, whichever client brings it. A class because there is one for each request, and
 * a closure for each of its steps would cost more than the steps.
 */
export class Answering {
  readonly #forwarding: Forwarding;
  readonly #options: AnsweringOptions;
  #over = false;
  #left = false;
  /** Whether anything was given to the connection. */
  #flushed = false;
  /** The first part of the body: it leaves with the head, and with the end if that is here as well. */
  #held: Buffer | undefined;
  #abort: ((error?: Error) => void) | undefined;
  /** Leaves nothing on the connection, which may be used for long. */
  readonly #forget: (() => void) | undefined;

  constructor(forwarding: Forwarding, options: AnsweringOptions) {
    this.#forwarding = forwarding;
    this.#options = options;
    const { incoming, outgoing } = forwarding;
    const close = (): void => this.#close();
    outgoing.on('close', close);
    // An answer that waits for those before it has no socket yet, and is not told when the connection closes.
    if (outgoing.socket === null) {
      incoming.socket.setMaxListeners(0).on('close', close);
      this.#forget = () => incoming.socket.off('close', close);
    }
    if (incoming.socket.destroyed) this.#close();
  }

  /** Whether nothing more can be sent: it is finished, refused, cut off, or the client has gone. */
  isOver(): boolean {
    return this.#over;
  }

  /** Called once if the answer is over before the upstream has finished: the client went, or something was wrong. */
  onAbort(abort: () => void): void {
    if (this.#over) abort();
    else this.#abort = abort;
  }

  /** Passes on 103; others are between two neighbours only. */
  inform(status: number, rawHeaders: readonly string[]): void {
    const { incoming, outgoing } = this.#forwarding;
    if (status !== 103 || this.#over || outgoing.headersSent || incoming.httpVersionMinor === 0) return;
    const link = rawHeaders.flatMap((name, i) =>
      i % 2 === 0 && name.toLowerCase() === 'link' ? [rawHeaders[i + 1] ?? ''] : [],
    );
    try {
      if (link.length > 0) outgoing.writeEarlyHints({ link });
    } catch {
      // Node knows fewer forms of Link than RFC 8288 has; hints can be left out.
    }
  }

  begin(status: number, rawHeaders: readonly string[]): void {
    if (this.#over) return;
    const headers = readAnswerHeaders(rawHeaders);
    if (headers === undefined) {
      this.fail(new AccessError('upstream_unavailable', { context: { part: 'Transfer-Encoding' } }));
      return;
    }
    try {
      writeHead(this.#forwarding.outgoing, status, headers);
    } catch (cause) {
      this.fail(new AccessError('upstream_unavailable', { cause }));
      return;
    }
    // Most answers come whole: then nothing is sent before the end of the turn.
    process.nextTick(flush, this);
  }

  /** Whether more may follow at once; else when the answer drains. */
  write(chunk: Buffer): boolean {
    if (this.#over) return true;
    if (!this.#flushed && this.#held === undefined) {
      this.#held = chunk;
      return true;
    }
    this.flush();
    return this.#forwarding.outgoing.write(chunk);
  }

  /** Gives the connection what is here. */
  flush(): void {
    if (this.#over || this.#flushed) return;
    this.#flushed = true;
    const { outgoing } = this.#forwarding;
    if (this.#held === undefined) outgoing.flushHeaders();
    else outgoing.write(this.#held);
    this.#held = undefined;
  }

  end(rawTrailers: readonly string[]): void {
    if (this.#over) return;
    this.#over = true;
    const { incoming, outgoing } = this.#forwarding;
    if (rawTrailers.length > 0 && outgoing.chunkedEncoding) outgoing.addTrailers(readTrailers(rawTrailers));
    if (this.#flushed) outgoing.end();
    else this.#options.batch.add(this);
    discardRest(incoming);
  }

  /** Sends an answer that came whole. */
  send(): void {
    const { outgoing } = this.#forwarding;
    const held = this.#held;
    this.#held = undefined;
    if (held === undefined) outgoing.end();
    else if (held.length > maxTextBytes) outgoing.end(held);
    else endInOnePiece(outgoing, held.toString('latin1'));
  }

  /** Refuses if nothing was sent yet, else closes the connection of the client, so that the cut is seen. */
  fail(error: AccessError): void {
    if (this.#over) return;
    this.#stop();
    const forwarding = this.#forwarding;
    const { incoming, outgoing } = forwarding;
    if (!outgoing.headersSent) {
      for (const name of outgoing.getHeaderNames()) outgoing.removeHeader(name);
      forwarding.refuse(error);
      discardRest(incoming);
      return;
    }
    forwarding.onCut?.(error);
    // To a client of HTTP/1.0 the end of the connection is the end of the body: a reset is not.
    if (incoming.httpVersionMinor === 0) incoming.socket.resetAndDestroy();
    // Behind a pending response it has no socket, and Node 24 and later do not destroy the one that it gets.
    else if (outgoing.socket === null) incoming.socket.destroy();
    else outgoing.destroy();
  }

  /** The connection speaks another protocol from now on. */
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

/** `end(text)` would be two pieces, of which the second is empty. The text is latin1. */
function endInOnePiece(outgoing: ServerResponse, text: string): void {
  const { socket } = outgoing;
  // Without a socket, earlier answers of the connection are still on their way; chunks have their own end.
  if (socket === null || outgoing.chunkedEncoding) {
    outgoing.end(text, 'latin1');
    return;
  }
  socket.cork();
  outgoing.write(text, 'latin1');
  socket.uncork();
  outgoing.end();
}

function flush(answering: Answering): void {
  answering.flush();
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
