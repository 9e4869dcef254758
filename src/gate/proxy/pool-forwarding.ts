import type { Dispatcher } from 'undici';
import { endsConnection } from './headers.ts';
import type { ResponseWriter } from './response.ts';
import { describeFailure, type ForwardJob, mayRepeat, type PooledClient } from './upstream.ts';

/** Position of the status in `HTTP/1.1 200 OK`. */
const firstDigit = 9;

/** Forwards a request without a body. */
export function forwardByPool(job: ForwardJob, pooled: PooledClient = job.upstream.pool.take()): void {
  const { method, target: path, headers } = job.head;
  pooled.client.dispatch({ method, path, headers, body: null }, new UpstreamResponseHandler(job, pooled));
}

/** Raw handler of undici for one response: the other form decodes header values as UTF-8. A class for each request. */
class UpstreamResponseHandler implements Dispatcher.DispatchHandler {
  readonly #job: ForwardJob;
  readonly #writer: ResponseWriter;
  /** Absent once another request may use it. */
  #pooled: PooledClient | undefined;
  #isReusable = true;
  /** Bytes that the connection has received for earlier requests. */
  #earlierBytes = 0;
  /** Position in the head of an informational response, digits of its status, and bytes of its end that were seen. */
  #at = 0;
  #status = 0;
  #ending = 0;
  #isFinal = false;
  #isDraining = false;
  #resume: (() => void) | undefined;

  constructor(job: ForwardJob, pooled: PooledClient) {
    this.#job = job;
    this.#writer = job.writer;
    this.#pooled = pooled;
    pooled.handler = this;
  }

  onConnect(abort: () => void): void {
    this.#earlierBytes = this.#pooled?.socket?.bytesRead ?? 0;
    if (this.#writer.isOver()) abort();
    else {
      this.#writer.onAbort(() => {
        this.drain();
        this.#leave('reset');
      });
    }
  }

  /** Makes 102 of each 100 before the response: undici refuses 100, and drops nothing else. */
  receive(chunk: Buffer): void {
    for (let i = 0; i < chunk.length && !this.#isFinal; i++) {
      const byte = chunk[i] ?? 0;
      if (this.#at >= firstDigit && this.#at < firstDigit + 3) {
        this.#status = this.#status * 10 + byte - 0x30;
        if (this.#at === firstDigit) this.#isFinal = this.#status !== 1;
        else if (this.#status === 100) chunk[i] = 0x32;
      }
      this.#at++;
      if (byte === (this.#ending % 2 === 0 ? 0x0d : 0x0a)) this.#ending++;
      else this.#ending = byte === 0x0d ? 1 : 0;
      if (this.#ending === 4) this.#at = this.#status = this.#ending = 0;
    }
  }

  onHeaders(status: number, rawHeaders: readonly (Buffer | string)[], resume: () => void): boolean {
    if (status < 200) {
      this.#writer.inform(status, decode(rawHeaders));
      return true;
    }
    const headers = decode(rawHeaders);
    const { ownConnections, forwarding } = this.#job;
    if (ownConnections.noteOffer(forwarding.incoming.socket, headers)) this.#isReusable = false;
    this.#resume = resume;
    this.#writer.begin(status, headers);
    if (endsConnection(this.#job.head.method, status)) {
      // Here, because undici awaits the body that a Content-Length announces.
      this.#writer.end([]);
      this.#leave('reset');
    }
    return true;
  }

  onData(chunk: Buffer): boolean {
    return this.#writer.write(chunk, this.#resume) || this.#isDraining;
  }

  onComplete(trailers: readonly (Buffer | string)[] | null): void {
    this.#writer.end(trailers === null ? [] : decode(trailers));
    this.#leave(this.#isReusable ? 'release' : 'reset');
  }

  onError(error: Error): void {
    const socket = this.#pooled?.socket;
    const isUnanswered = this.#earlierBytes > 0 && socket?.bytesRead === this.#earlierBytes;
    this.#leave('discard');
    if (isUnanswered && mayRepeat(this.#job, error)) {
      forwardByPool({ ...this.#job, isRepeated: true }, this.#job.upstream.pool.create());
    } else this.#writer.fail(describeFailure(error));
  }

  drain(): void {
    this.#isDraining = true;
    this.#resume?.();
  }

  #leave(way: 'release' | 'reset' | 'discard'): void {
    const pooled = this.#pooled;
    if (pooled === undefined) return;
    this.#pooled = undefined;
    pooled.handler = undefined;
    this.#job.upstream.pool[way](pooled);
  }
}

/** Decodes header values as latin1, as Node does. */
function decode(raw: readonly (Buffer | string)[]): readonly string[] {
  return raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')));
}
