import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { AccessError } from '../../failures.ts';
import { createAnswerBatch } from '../../server/http/answer-batch.ts';
import { discardRest } from './discard.ts';
import type { Forwarding } from './forwarding.ts';
import { forwardByDispatcher } from './pool-forwarding.ts';
import { forwardByRequest } from './request-forwarding.ts';
import { createRequestHead, type Framing, readFraming } from './request-head.ts';
import { Answering, type AnsweringOptions } from './response.ts';
import { forwardUpgrade, isWebSocketRequest } from './upgrade.ts';
import { openUpstream } from './upstream.ts';

export { discardRest } from './discard.ts';
export type { Credentials, Forwarding, Identity, TakeSocket } from './forwarding.ts';
export type { Framing } from './request-head.ts';

/** How requests reach the upstream. */
export interface ReverseProxyOptions {
  /** `http://host[:port]`, `https://host[:port]` or `unix:/path`; nothing behind it. */
  readonly upstream: string;
  /** Seconds for the upstream to take a connection, to begin its answer, and between two parts of it. Default 60. */
  readonly timeout?: number;
  /** `off`: one connection to the upstream for each request. Default `on`. */
  readonly keepAlive?: 'on' | 'off';
  /** Requests and tunnels that may be on their way at one time; one more is refused with 503. Default 4096. */
  readonly maxInFlight?: number;
  /** Seconds without a byte of an upload after which it is refused with 408. Default: 60. */
  readonly uploadTimeout?: number;
  /** Part of them that one client may take, over 0 and at most 1. Default: 1. */
  readonly share?: number;
  /** PEM certificates that an `https://` upstream is trusted by; default those of Node. */
  readonly ca?: string;
}

/** A way to one upstream. */
export interface ReverseProxy {
  /**
   * Reads where a request goes and ends, or refuses it since another server could read it in another way. Ask in the turn in
   * which it came, before it is judged: what follows on its connection cannot be believed, so the answer closes it.
   */
  examine(incoming: IncomingMessage, outgoing: ServerResponse): Framing | AccessError;
  /** Passes on one request that was examined, and its answer. Never throws. */
  forward(forwarding: Forwarding, framing: Framing): void;
  /** Requests and tunnels on their way. */
  inFlight(): number;
  /** Sends the answers that wait for the end of the turn: a connection is about to be closed. */
  sendReady(): void;
  /** Drops every connection to the upstream. */
  close(): void;
}

const defaultTimeout = 60;
const defaultUploadTimeout = 60;
const defaultMaxInFlight = 4096;

/**
 * Makes a streaming HTTP/1.1 reverse proxy to one upstream: no retries, no cache, nothing buffered. Rejects with
 * `TypeError` for an upstream that is not a URL of the three forms, or has a path.
 */
export async function createReverseProxy(options: ReverseProxyOptions): Promise<ReverseProxy> {
  const { maxInFlight = defaultMaxInFlight, share = 1, keepAlive = 'on' } = options;
  const { timeout = defaultTimeout, uploadTimeout = defaultUploadTimeout } = options;
  const maxOfClient = Math.max(1, Math.floor(maxInFlight * share));
  const upstream = await openUpstream({ ...options, timeout, uploadTimeout, keepAlive });
  let inFlight = 0;
  const inFlightOf = new Map<string, number>();

  const batch = createAnswerBatch<Answering>((answers) => {
    for (const answer of answers) answer.send();
  });
  const answeringOptions: AnsweringOptions = {
    batch,
    leave(forwarding) {
      inFlight--;
      const left = (inFlightOf.get(forwarding.client) ?? 0) - 1;
      if (left > 0) inFlightOf.set(forwarding.client, left);
      else inFlightOf.delete(forwarding.client);
      forwarding.onDone?.();
    },
  };

  /** Connections on which a request was ambiguous. */
  const doubtful = new WeakMap<Socket, AccessError>();

  return {
    examine(incoming, outgoing) {
      const { socket } = incoming;
      const framing = doubtful.get(socket) ?? readFraming(incoming);
      if (framing instanceof AccessError) {
        doubtful.set(socket, framing);
        outgoing.shouldKeepAlive = false;
      }
      return framing;
    },
    forward(forwarding, framing) {
      const { client } = forwarding;
      const ofClient = inFlightOf.get(client) ?? 0;
      if (inFlight >= maxInFlight || (ofClient >= maxOfClient && client !== '')) {
        forwarding.refuse(new AccessError('upstream_overloaded'));
        discardRest(forwarding.incoming);
        forwarding.onDone?.();
        return;
      }
      const head = createRequestHead(forwarding, framing);
      inFlight++;
      inFlightOf.set(client, ofClient + 1);
      const answering = new Answering(forwarding, answeringOptions);
      try {
        if (isWebSocketRequest(forwarding, head)) forwardUpgrade({ upstream, forwarding, head, answering });
        else if (head.body === 'none' && !head.expectsContinue) {
          forwardByDispatcher({ upstream, forwarding, head, answering });
        } else forwardByRequest({ upstream, forwarding, head, answering });
      } catch (cause) {
        answering.fail(new AccessError('unexpected', { cause }));
      }
    },
    inFlight: () => inFlight,
    sendReady: batch.sendNow,
    close: () => upstream.close(),
  };
}
