import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Refused } from '../../refused.ts';
import { createAnswerBatch } from '../../server/http/answer.ts';
import { discardRest } from './discard.ts';
import type { Forwarding } from './forwarding.ts';
import { forwardByDispatcher } from './pool-forwarding.ts';
import { forwardByRequest } from './request-forwarding.ts';
import { createRequestHead, type Framing, readFraming } from './request-head.ts';
import { ResponseWriter, type ResponseWriterOptions } from './response.ts';
import { forwardUpgrade, isWebSocketRequest } from './upgrade.ts';
import { openUpstream } from './upstream.ts';

export { discardRest } from './discard.ts';
export type { CredentialForwarding, Forwarding, Identity, TakeSocket } from './forwarding.ts';
export type { Framing } from './request-head.ts';

export interface ReverseProxyOptions {
  readonly upstream: string;
  /** Seconds for the upstream to accept a connection, to start its response, and between two chunks. Default: 60. */
  readonly timeout?: number;
  /** `off`: one connection to the upstream for each request. Default: `on`. */
  readonly keepAlive?: 'on' | 'off';
  /** Maximum number of requests and tunnels in flight; more are refused with 503. Default: 4096. */
  readonly maxInFlight?: number;
  /** Seconds without a byte of an upload until 408. Default: 60. */
  readonly uploadTimeout?: number;
  /** Share of them that one client may use, over 0 and at most 1. Default: 1. */
  readonly share?: number;
  /** PEM certificates that replace the roots of Node for an `https://` upstream. */
  readonly ca?: string;
  /** Batch of complete responses, shared by several proxies. Default: its own. */
  readonly batch?: ResponseWriterOptions['batch'];
  /** Called if a connection succeeds after one that failed, or fails after one that succeeded. */
  readonly onReachable?: (isReachable: boolean) => void;
  /** Called with the seconds from a request to the head of its response. */
  readonly onHead?: ResponseWriterOptions['onHead'];
}

export interface ReverseProxy {
  readonly address: string;
  /**
   * Reads the target and end of a request, or refuses it because another server could read it differently. Must run in the
   * iteration in which the request arrived. A refusal closes the connection, because its next bytes are not trustworthy.
   */
  examine(incoming: IncomingMessage, outgoing: ServerResponse): Framing | Refused;
  /** Forwards one examined request and its response. Never throws. */
  forward(forwarding: Forwarding, framing: Framing): void;
  inFlight(): number;
  /** Sends the pending complete responses, before a connection is closed. */
  sendReady(): void;
  close(): void;
  /** Closes every connection once the requests in flight have finished. */
  retire(): void;
  /** Opens and closes one connection, to find out if the upstream is reachable. */
  probe(): void;
  /** Result of the last connection; true before the first. */
  isReachable(): boolean;
}

const defaultTimeout = 60;
const defaultUploadTimeout = 60;
const defaultMaxInFlight = 4096;

/**
 * Creates a streaming HTTP/1.1 reverse proxy to one upstream without retries, cache or buffering. Rejects with `TypeError`
 * for an upstream that is not an address.
 */
export async function createReverseProxy(options: ReverseProxyOptions): Promise<ReverseProxy> {
  const { maxInFlight = defaultMaxInFlight, share = 1, keepAlive = 'on' } = options;
  const { timeout = defaultTimeout, uploadTimeout = defaultUploadTimeout } = options;
  const maxOfClient = Math.max(1, Math.floor(maxInFlight * share));
  const upstream = await openUpstream({ ...options, timeout, uploadTimeout, keepAlive });
  let inFlight = 0;
  const inFlightOf = new Map<string, number>();

  const batch =
    options.batch ??
    createAnswerBatch<ResponseWriter>((responses) => {
      for (const response of responses) response.send();
    });
  let isRetired = false;
  const writerOptions: ResponseWriterOptions = {
    batch,
    onHead: options.onHead ?? (() => {}),
    leave(forwarding) {
      inFlight--;
      const left = (inFlightOf.get(forwarding.client) ?? 0) - 1;
      if (left > 0) inFlightOf.set(forwarding.client, left);
      else inFlightOf.delete(forwarding.client);
      forwarding.onDone?.();
      if (isRetired && inFlight === 0) upstream.close();
    },
  };

  return {
    address: options.upstream,
    examine: createExamine(),
    forward(forwarding, framing) {
      const { client } = forwarding;
      const ofClient = inFlightOf.get(client) ?? 0;
      if (inFlight >= maxInFlight || (ofClient >= maxOfClient && client !== '')) {
        forwarding.refuse(new Refused('upstream_overloaded'));
        discardRest(forwarding.incoming);
        forwarding.onDone?.();
        return;
      }
      const head = createRequestHead(forwarding, framing);
      inFlight++;
      inFlightOf.set(client, ofClient + 1);
      const writer = new ResponseWriter(forwarding, writerOptions);
      try {
        if (isWebSocketRequest(forwarding, head)) forwardUpgrade({ upstream, forwarding, head, writer });
        else if (head.body === 'none' && !head.expectsContinue) {
          forwardByDispatcher({ upstream, forwarding, head, writer });
        } else forwardByRequest({ upstream, forwarding, head, writer });
      } catch (cause) {
        writer.fail(new Refused('unexpected', { cause }));
      }
    },
    inFlight: () => inFlight,
    sendReady: batch.sendNow,
    close: () => upstream.close(),
    retire() {
      isRetired = true;
      if (inFlight === 0) upstream.close();
    },
    probe: () => upstream.probe(),
    isReachable: () => upstream.isReachable(),
  };
}

export function createExamine(): ReverseProxy['examine'] {
  /** Refusals by connection with an ambiguous request. */
  const doubtful = new WeakMap<Socket, Refused>();
  return (incoming, outgoing) => {
    const { socket } = incoming;
    const framing = doubtful.get(socket) ?? readFraming(incoming);
    if (framing instanceof Refused) {
      doubtful.set(socket, framing);
      outgoing.shouldKeepAlive = false;
    }
    return framing;
  };
}
