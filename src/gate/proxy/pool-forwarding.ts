import type { Dispatcher } from 'undici';
import { AccessError } from '../../failures.ts';
import type { Forwarding } from './forwarding.ts';
import type { PooledClient } from './pool.ts';
import type { RequestHead } from './request-head.ts';
import type { Answering } from './response.ts';
import type { Upstream } from './upstream.ts';
import { endsConnection } from './upstream-connection.ts';

/** All that is needed to forward one request. */
export interface Errand {
  readonly upstream: Upstream;
  readonly forwarding: Forwarding;
  readonly head: RequestHead;
  readonly answering: Answering;
}

const timeoutCodes: ReadonlySet<string> = new Set([
  ...['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT'],
]);

/** What a client of HTTP says of the upstream, as a reason. */
export function describeFailure(cause: Error): AccessError {
  const { code } = cause as NodeJS.ErrnoException; // undici's errors have one too
  if (code === 'UND_ERR_INVALID_ARG' || code === 'ERR_INVALID_CHAR') return new AccessError('unexpected', { cause });
  return new AccessError(timeoutCodes.has(code ?? '') ? 'upstream_timeout' : 'upstream_unavailable', { cause });
}

/** Forwards a request without a body. */
export function forwardByDispatcher(errand: Errand): void {
  const { method, target: path } = errand.head;
  const headers = errand.head.headers as string[]; // it is only read
  const pooled = errand.upstream.pool.take();
  pooled.client.dispatch({ method, path, headers, body: null }, new AnswerHandler(errand, pooled));
}

/**
 * What the dispatcher tells of an answer. The raw form of the handler is used: the other decodes header values as UTF-8,
 * and so changes those that are not. A class because there is one for each request.
 */
class AnswerHandler implements Dispatcher.DispatchHandler {
  readonly #errand: Errand;
  readonly #answering: Answering;
  /** Absent once another request may have it. */
  #pooled: PooledClient | undefined;
  #isReusable: boolean;
  #isDraining = false;
  #goOn: (() => void) | undefined;

  constructor(errand: Errand, pooled: PooledClient) {
    this.#errand = errand;
    this.#answering = errand.answering;
    this.#pooled = pooled;
    pooled.handler = this;
    this.#isReusable = errand.upstream.keepAlive === 'on';
  }

  onConnect(abort: () => void): void {
    if (this.#answering.isOver()) abort();
    else this.#answering.onAbort(() => this.#cut());
  }

  onHeaders(status: number, rawHeaders: readonly (Buffer | string)[], resume: () => void): boolean {
    const headers = decode(rawHeaders);
    if (status < 200) {
      this.#answering.inform(status, headers);
      return true;
    }
    if (endsConnection(this.#errand.head.method, status)) this.#isReusable = false;
    this.#goOn = resume;
    this.#answering.begin(status, headers);
    return true;
  }

  onData(chunk: Buffer): boolean {
    if (this.#answering.write(chunk) || this.#isDraining) return true;
    if (this.#goOn !== undefined) this.#errand.forwarding.outgoing.once('drain', this.#goOn);
    return false;
  }

  onComplete(trailers: readonly (Buffer | string)[] | null): void {
    this.#answering.end(trailers === null ? [] : decode(trailers));
    this.#leave(this.#isReusable ? 'release' : 'reset');
  }

  onError(error: Error): void {
    this.#leave('discard');
    this.#answering.fail(describeFailure(error));
  }

  /** Reads the rest of the response without pauses. */
  drain(): void {
    this.#isDraining = true;
    this.#goOn?.();
  }

  #cut(): void {
    this.drain();
    this.#leave('reset');
  }

  #leave(way: 'release' | 'reset' | 'discard'): void {
    const pooled = this.#pooled;
    if (pooled === undefined) return;
    this.#pooled = undefined;
    pooled.handler = undefined;
    this.#errand.upstream.pool[way](pooled);
  }
}

/** Header values are bytes: each becomes the character of its number, as Node has it. */
function decode(raw: readonly (Buffer | string)[]): readonly string[] {
  return raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')));
}
