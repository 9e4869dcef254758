import { AccessError } from '../failures.ts';
import { createAnswering } from './reverse-proxy-answer.ts';
import { forwardByDispatcher } from './reverse-proxy-dispatcher.ts';
import type { Forwarding } from './reverse-proxy-forwarding.ts';
import { readRequestHead } from './reverse-proxy-head.ts';
import { forwardByRequest } from './reverse-proxy-request.ts';
import { forwardUpgrade, isWebSocketRequest } from './reverse-proxy-upgrade.ts';
import { openUpstream } from './reverse-proxy-upstream.ts';

export type { Forwarding, Identity, PassedCredential, TakeSocket } from './reverse-proxy-forwarding.ts';

/** How requests reach the upstream. */
export interface ReverseProxyOptions {
  /** `http://host[:port]`, `https://host[:port]` or `unix:/path`; nothing behind it. */
  readonly upstream: string;
  /** Seconds for the upstream to take a connection, to begin its answer, and between two parts of it. Default 60. */
  readonly timeout?: number;
  /** Requests and tunnels that may be on their way at one time; one more is refused with 503. Default 4096. */
  readonly maxInFlight?: number;
  /** PEM certificates that an `https://` upstream is trusted by; default those of Node. */
  readonly ca?: string;
}

/** A way to one upstream. */
export interface ReverseProxy {
  /** Passes on one request, and its answer. Never throws. */
  forward(forwarding: Forwarding): void;
  /** Requests and tunnels on their way. */
  inFlight(): number;
  /** Drops every connection to the upstream. */
  close(): void;
}

const defaultTimeout = 60;
const defaultMaxInFlight = 4096;

/**
 * Makes a streaming HTTP/1.1 reverse proxy to one upstream: no retries, no cache, nothing buffered. Rejects with
 * `TypeError` for an upstream that is not a URL of the three forms, or has a path.
 */
export async function createReverseProxy(options: ReverseProxyOptions): Promise<ReverseProxy> {
  const { maxInFlight = defaultMaxInFlight } = options;
  const upstream = await openUpstream({ ...options, timeout: options.timeout ?? defaultTimeout });
  let inFlight = 0;
  const leave = (): void => {
    inFlight--;
  };

  return {
    forward(forwarding) {
      if (inFlight >= maxInFlight) {
        forwarding.refuse(new AccessError('upstream_overloaded'));
        return;
      }
      const head = readRequestHead(forwarding);
      if (head instanceof AccessError) {
        forwarding.refuse(head);
        return;
      }
      // Node takes the body of such a request for the first bytes of the other protocol.
      if (forwarding.takeSocket !== undefined && head.framing !== 'none') {
        forwarding.refuse(new AccessError('ambiguous_request', { context: { part: 'Upgrade' } }));
        return;
      }
      inFlight++;
      const answering = createAnswering(forwarding, leave);
      try {
        if (isWebSocketRequest(forwarding, head)) forwardUpgrade({ upstream, forwarding, head, answering });
        else if (head.framing === 'none' && !head.expectsContinue) {
          forwardByDispatcher({ upstream, forwarding, head, answering });
        } else forwardByRequest({ upstream, forwarding, head, answering });
      } catch (cause) {
        answering.fail(new AccessError('unexpected', { cause }));
      }
    },
    inFlight: () => inFlight,
    close: () => upstream.close(),
  };
}
