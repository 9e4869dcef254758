import type { Dispatcher } from 'undici';
import { endsConnection } from './headers.ts';
import type { ResponseWriter } from './response.ts';
import { describeFailure, type ForwardJob, type PooledClient } from './upstream.ts';

/** Forwards a request without a body. */
export function forwardByPool(job: ForwardJob): void {
  const { method, target: path } = job.head;
  const headers = job.head.headers as string[]; // it is only read
  const pooled = job.upstream.pool.take();
  pooled.client.dispatch({ method, path, headers, body: null }, new UpstreamResponseHandler(job, pooled));
}

/**
 * Handler of undici for one response. Its raw form is used, because the other form decodes header values as UTF-8. A class,
 * because one exists per request.
 */
class UpstreamResponseHandler implements Dispatcher.DispatchHandler {
  readonly #job: ForwardJob;
  readonly #writer: ResponseWriter;
  /** Absent once another request may use it. */
  #pooled: PooledClient | undefined;
  readonly #isReusable: boolean;
  #isDraining = false;
  #resume: (() => void) | undefined;

  constructor(job: ForwardJob, pooled: PooledClient) {
    this.#job = job;
    this.#writer = job.writer;
    this.#pooled = pooled;
    pooled.handler = this;
    this.#isReusable = job.upstream.keepAlive === 'on';
  }

  onConnect(abort: () => void): void {
    if (this.#writer.isOver()) abort();
    else {
      this.#writer.onAbort(() => {
        this.drain();
        this.#leave('reset');
      });
    }
  }

  onHeaders(status: number, rawHeaders: readonly (Buffer | string)[], resume: () => void): boolean {
    const headers = decode(rawHeaders);
    if (status < 200) {
      this.#writer.inform(status, headers);
      return true;
    }
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
    if (this.#writer.write(chunk) || this.#isDraining) return true;
    if (this.#resume !== undefined) this.#job.forwarding.outgoing.once('drain', this.#resume);
    return false;
  }

  onComplete(trailers: readonly (Buffer | string)[] | null): void {
    this.#writer.end(trailers === null ? [] : decode(trailers));
    this.#leave(this.#isReusable ? 'release' : 'reset');
  }

  onError(error: Error): void {
    this.#leave('discard');
    this.#writer.fail(describeFailure(error));
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
