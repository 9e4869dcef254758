import { readNodeBytes } from '../../adapters/node-request.ts';
import type { EventReceiver } from '../../core/http/event-post.ts';
import type { ReadClientAddress } from '../../core/http/external-url.ts';
import { namePeer } from '../../core/http/peer-name.ts';
import { createAnswer, type Exchange, type StreamApp, type Wire } from './exchange.ts';
import { createPlaces } from './peer-places.ts';

interface EventLimits {
  readonly readClientAddress: ReadClientAddress;
  /** Seconds for a complete body. */
  readonly uploadTimeout: number;
  /** The part of the bodies in flight that one peer may have, over 0 and at most 1. */
  readonly peerShare: number;
}

/** Bodies in flight. Most arrive with their heads, so the oldest one is a slow one. */
const maxBodies = 1024;

/** Path of a request target, which may be a complete URL (RFC 9112 §3.2.2). */
const pathOf = (target: string): string => target.replace(/^https?:\/\/[^/?]*/i, '').replace(/\?.*$/s, '');

/** Serves the endpoints for events before an app, and so before the rules of a gate: exact paths, on any host. */
export function serveEvents(app: StreamApp, receivers: readonly EventReceiver[], limits: EventLimits): StreamApp {
  if (receivers.length === 0) return app;
  const readBody = createReadBody(limits);
  return (exchange, target, wire) => {
    const path = pathOf(target);
    const receiver = receivers.find(({ serves }) => serves(path));
    if (receiver === undefined) return app(exchange, target, wire);
    // A stream that does not exist must not become a label of metrics.
    exchange.route = receiver.route;
    const { request, connection } = exchange;
    return receiver
      .respond({ request, connection, readBody: (maxBytes) => readBody(exchange, wire, maxBytes) }, path)
      .then(({ status, headers, body }) => createAnswer(status, Object.entries(headers).flat(), body));
  };
}

/** Creates the reader of bodies, which ends those that are not complete in time, or whose place a newer one takes. */
function createReadBody({ readClientAddress, uploadTimeout, peerShare }: EventLimits) {
  const places = createPlaces(maxBodies, peerShare);
  return async (
    { request, connection }: Exchange,
    { incoming, outgoing }: Wire,
    maxBytes: number,
  ): Promise<string | 413 | 408> => {
    if (Number(incoming.headers['content-length']) > maxBytes) return 413;
    const controller = new AbortController();
    const place = { peer: namePeer(readClientAddress(request, connection)), end: () => controller.abort() };
    places.take(place);
    // After the reads, which the timers precede after a stall of this process.
    const timer = setTimeout(() => setImmediate(place.end), uploadTimeout * 1000);
    if (incoming.headers.expect !== undefined && incoming.httpVersion === '1.1') outgoing.writeContinue();
    try {
      return (await readNodeBytes(incoming, maxBytes, controller.signal))?.toString('utf8') ?? 413;
    } catch (error) {
      if (!controller.signal.aborted) throw error;
      outgoing.shouldKeepAlive = false;
      return 408;
    } finally {
      clearTimeout(timer);
      places.leave(place);
    }
  };
}
