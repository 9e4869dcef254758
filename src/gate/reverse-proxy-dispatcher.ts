import { AccessError } from '../failures.ts';
import type { Answering } from './reverse-proxy-answer.ts';
import type { Forwarding } from './reverse-proxy-forwarding.ts';
import type { RequestHead } from './reverse-proxy-head.ts';
import type { Upstream } from './reverse-proxy-upstream.ts';

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

/**
 * Forwards a request without a body. The raw form of the handler is used: the other decodes header values as UTF-8,
 * and so changes those that are not.
 */
export function forwardByDispatcher({ upstream, forwarding, head, answering }: Errand): void {
  const { outgoing } = forwarding;
  let goOn: () => void;
  upstream.pool.dispatch(
    {
      method: head.method,
      path: head.target,
      headers: head.headers as string[], // it is only read
      body: null,
      ...(upstream.servername !== null && { servername: upstream.servername }),
    },
    {
      onConnect: (abort) => answering.onAbort(abort),
      onHeaders(status, rawHeaders, resume) {
        const headers = decode(rawHeaders);
        if (status < 200) {
          answering.inform(status, headers);
          return true;
        }
        goOn = resume;
        answering.begin(status, headers);
        return true;
      },
      onData(chunk) {
        if (answering.write(chunk)) return true;
        outgoing.once('drain', goOn);
        return false;
      },
      onComplete: (trailers) => answering.end(trailers === null ? [] : decode(trailers)),
      onError: (error) => answering.fail(describeFailure(error)),
    },
  );
}

/** Header values are bytes: each becomes the character of its number, as Node has it. */
function decode(raw: readonly (Buffer | string)[]): readonly string[] {
  return raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')));
}
