import { Refused } from '../../core/refused.ts';
import { discardRest, type HeaderList } from '../../server/http/exchange.ts';
import { createDeadline, type Deadline } from './deadline.ts';
import { EventBoundary } from './event-boundary.ts';
import { endsConnection, formatLines, hasHeader, mergeHeaders, readResponseHeaders, readTrailers } from './headers.ts';
import type { Forwarding } from './request-head.ts';

export interface ResponseWriterOptions {
  /** Milliseconds between two parts of a response. */
  readonly timeoutMilliseconds: number;
  /** Milliseconds between two parts of an event stream. */
  readonly streamMilliseconds: number;
  /** Called with the seconds from the request to the head of the upstream's response. */
  readonly onHead: (seconds: number) => void;
  /** Responses that their connections have not finished. */
  readonly inFlight: Set<ResponseWriter>;
  /** Called once for each response, when its connection has finished it. */
  readonly leave: (forwarding: Forwarding) => void;
}

/** An event stream, and the function that stops to follow its token, if it does. */
interface EventStream {
  readonly stop: (() => void) | undefined;
  readonly hasLength: boolean;
  /** Absent if its events cannot be seen. */
  readonly boundary: EventBoundary | undefined;
  /** Set once the end is due. */
  deadline: NodeJS.Timeout | undefined;
}

const eventStreamType = /^text\/event-stream\s*(?:;|$)/i;
/** Time that the current event has once the end of its stream is due. With the timers before it, below a second. */
const maxEventMilliseconds = 900;

/** Unread bytes of a client that gets no further hints. */
const maxUnreadHints = 64 * 1024;

/** Maximum size of a body that is sent as one string with its head: one piece, and one copy. */
const maxTextBytes = 8192;

/** Writes the response to one request. A class, because closures for each request would cost more than its steps. */
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
  #abort: ((error?: Error) => void) | undefined;
  /** Present for an event stream. */
  #stream: EventStream | undefined;
  #deadline: Deadline | undefined;
  /** True while the client takes no more. */
  #isPaused = false;
  #isUploading: (() => boolean) | undefined;

  constructor(forwarding: Forwarding, options: ResponseWriterOptions) {
    this.#forwarding = forwarding;
    this.#options = options;
    const { incoming, outgoing } = forwarding;
    options.inFlight.add(this);
    outgoing.on('close', () => this.#close());
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

  /** Limits the time until the response begins, except while the client sends. Otherwise, the limit begins with the head. */
  limit(isUploading?: () => boolean): void {
    this.#isUploading = isUploading;
    this.#startDeadline(this.#options.timeoutMilliseconds);
  }

  #startDeadline(milliseconds: number): void {
    this.#deadline?.clear();
    this.#deadline = createDeadline(milliseconds, () => {
      // The client has its own time limit.
      if (this.#isPaused || this.#isUploading?.() === true) this.noteProgress();
      else this.fail(new Refused('upstream_timeout'));
    });
  }

  /** Responds before the process ends: 504 if the upstream has not begun, and an event stream ends after its current event. */
  endWaiting(): void {
    if (this.#head !== undefined || this.#flushed) this.#endStream();
    else this.fail(new Refused('upstream_timeout'));
  }

  /** Restarts the time limit. */
  noteProgress(): void {
    if (!this.#over) this.#deadline?.refresh();
  }

  /** Forwards a 103 while the client reads. Other informational responses are for one hop. */
  inform(status: number, rawHeaders: readonly string[]): void {
    const { incoming, outgoing } = this.#forwarding;
    if (status !== 103 || this.#over || outgoing.headersSent || incoming.httpVersionMinor === 0) return;
    if (incoming.socket.writableLength >= maxUnreadHints) return;
    const headers = readResponseHeaders(rawHeaders, false) ?? [];
    incoming.socket.write(`HTTP/1.1 103 Early Hints\r\n${formatLines(headers)}\r\n`, 'latin1');
  }

  begin(status: number, rawHeaders: readonly string[]): void {
    if (this.#over) return;
    this.noteProgress();
    this.#options.onHead((performance.now() - this.#startedAt) / 1000);
    if (this.#forwarding.repeat?.(status, rawHeaders) === true) return void this.#stop();
    const { method = '', httpVersionMinor } = this.#forwarding.incoming;
    const mayTrail = httpVersionMinor > 0 && !endsConnection(method, status);
    const headers = readResponseHeaders(rawHeaders, mayTrail);
    if (headers === undefined) {
      return void this.fail(new Refused('upstream_unavailable', { context: { part: 'Transfer-Encoding' } }));
    }
    const { responseHeaders, prefersUpstreamCors } = this.#forwarding;
    if (hasHeader(headers, 'content-type', eventStreamType) && !this.#follow(headers)) return;
    this.#head = { status, headers: mergeHeaders(headers, responseHeaders, prefersUpstreamCors) };
    // Most responses arrive complete, so nothing is sent before the event-loop iteration ends.
    process.nextTick(() => this.#flush());
  }

  /** Follows an event stream, and its token. Returns false if the token has ended: the response has failed. */
  #follow(headers: HeaderList): boolean {
    const stop = this.#forwarding.followToken?.(() => this.#endStream());
    if (stop instanceof Refused) this.fail(stop);
    else {
      const isReadable = !hasHeader(headers, 'content-encoding', /^(?!identity$)/i);
      const hasLength = hasHeader(headers, 'content-length');
      this.#stream = { stop, hasLength, boundary: isReadable ? new EventBoundary() : undefined, deadline: undefined };
    }
    return !this.#over;
  }

  /** Ends an event stream after its current event. Those in a compressed one cannot be seen. */
  #endStream(): void {
    const stream = this.#stream;
    if (stream === undefined || this.#over) return;
    if (stream.boundary?.isReached() !== false) this.#cut();
    else stream.deadline = setTimeout(() => this.#cut(), maxEventMilliseconds);
  }

  #cut(): void {
    if (this.#over) return;
    // Fewer bytes than announced: the next response on this connection could not be found.
    if (this.#stream?.hasLength === true) this.#forwarding.outgoing.destroy();
    else this.end([]);
    this.#stop();
  }

  /** Returns false if the next chunk must await `resume`. */
  write(chunk: Buffer, resume?: () => void): boolean {
    this.noteProgress();
    const { boundary, deadline } = this.#stream ?? {};
    const end = deadline === undefined ? undefined : boundary?.find(chunk);
    const isTaken = this.#send(end === undefined ? chunk : chunk.subarray(0, end));
    boundary?.note(chunk);
    if (end !== undefined) this.#cut();
    this.#isPaused = !isTaken;
    if (!isTaken) {
      this.#forwarding.outgoing.once('drain', () => {
        this.#isPaused = false;
        this.noteProgress();
        resume?.();
      });
    }
    return isTaken;
  }

  #send(chunk: Buffer): boolean {
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
    // For this header Node sends the head at once, and not as latin1.
    const socket = hasHeader(headers, 'expect') ? outgoing.socket : null;
    socket?.setDefaultEncoding('latin1');
    let failed: Refused | undefined;
    try {
      outgoing.writeHead(status, headers as string[]); // Node only reads them
    } catch (cause) {
      failed = new Refused('upstream_unavailable', { cause });
    }
    // Before the refusal, whose body is UTF-8.
    socket?.setDefaultEncoding('utf8');
    if (failed !== undefined) this.fail(failed);
    return failed === undefined;
  }

  #flush(): void {
    const { headers = [] } = this.#head ?? {};
    if (this.#over || this.#flushed || !this.#writeHead()) return;
    this.#flushed = true;
    const { outgoing } = this.#forwarding;
    const { timeoutMilliseconds, streamMilliseconds } = this.#options;
    if (hasHeader(headers, 'content-type', eventStreamType)) this.#startDeadline(streamMilliseconds);
    else if (this.#deadline === undefined) this.#startDeadline(timeoutMilliseconds);
    // An empty piece, because `flushHeaders` writes values of the head as UTF-8.
    outgoing.write(this.#held ?? '', 'latin1');
    this.#held = undefined;
  }

  end(rawTrailers: readonly string[]): void {
    if (this.#over || !this.#writeHead()) return;
    this.handOver();
    const { incoming, outgoing } = this.#forwarding;
    if (rawTrailers.length > 0 && outgoing.chunkedEncoding) outgoing.addTrailers(readTrailers(rawTrailers));
    const held = this.#held;
    outgoing.end(held !== undefined && held.length <= maxTextBytes ? held.toString('latin1') : held, 'latin1');
    discardRest(incoming);
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
    forwarding.onCut(error);
    // To an HTTP/1.0 client, the end of the connection is the end of the body, but a reset is not.
    if (incoming.httpVersionMinor === 0) incoming.socket.resetAndDestroy();
    else outgoing.destroy();
  }

  /** Marks the response as over: it is complete, or the connection now has another protocol. */
  handOver(): void {
    this.#over = true;
    this.#deadline?.clear();
  }

  #stop(): void {
    this.handOver();
    const abort = this.#abort;
    this.#abort = undefined;
    abort?.();
  }

  #close(): void {
    if (this.#left) return;
    this.#left = true;
    this.#stream?.stop?.();
    clearTimeout(this.#stream?.deadline);
    this.#options.inFlight.delete(this);
    this.#options.leave(this.#forwarding);
    this.#stop();
  }
}
