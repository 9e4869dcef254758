import type { ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';
import { AccessError } from '../../failures.ts';
import type { Forwarding } from './forwarding.ts';
import type { RequestHead } from './request-head.ts';
import type { Answering } from './response.ts';
import type { Upstream } from './upstream.ts';

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
export function forwardByDispatcher({ upstream, forwarding, head, answering }: Errand): void {
  const { method, target: path } = head;
  const headers = head.headers as string[]; // it is only read
  const request = { method, path, headers, body: null, servername: upstream.servername };
  upstream.pool.dispatch(request, new AnswerHandler(forwarding.outgoing, answering));
}

/**
 * What the dispatcher tells of an answer. The raw form of the handler is used: the other decodes header values as UTF-8,
 * and so changes those that are not. A class because there is one for each request.
 */
class AnswerHandler implements Dispatcher.DispatchHandler {
  readonly #outgoing: ServerResponse;
  readonly #answering: Answering;
  #goOn: (() => void) | undefined;

  constructor(outgoing: ServerResponse, answering: Answering) {
    this.#outgoing = outgoing;
    this.#answering = answering;
  }

  onConnect(abort: () => void): void {
    this.#answering.onAbort(abort);
  }

  onHeaders(status: number, rawHeaders: readonly (Buffer | string)[], resume: () => void): boolean {
    const headers = decode(rawHeaders);
    if (status < 200) {
      this.#answering.inform(status, headers);
      return true;
    }
    this.#goOn = resume;
    this.#answering.begin(status, headers);
    return true;
  }

  onData(chunk: Buffer): boolean {
    if (this.#answering.write(chunk)) return true;
    if (this.#goOn !== undefined) this.#outgoing.once('drain', this.#goOn);
    return false;
  }

  onComplete(trailers: readonly (Buffer | string)[] | null): void {
    this.#answering.end(trailers === null ? [] : decode(trailers));
  }

  onError(error: Error): void {
    this.#answering.fail(describeFailure(error));
  }
}

/** Header values are bytes: each becomes the character of its number, as Node has it. */
function decode(raw: readonly (Buffer | string)[]): readonly string[] {
  return raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')));
}
