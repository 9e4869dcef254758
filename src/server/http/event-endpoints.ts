import { readNodeBody } from '../../adapters/node-request.ts';
import type { EventReceiver } from '../../http/event-post.ts';
import { createAnswer } from './answer.ts';
import type { StreamApp } from './exchange.ts';

/** Path of a request target, which may be a complete URL (RFC 9112 §3.2.2). */
const pathOf = (target: string): string => target.replace(/^https?:\/\/[^/?]*/i, '').replace(/\?.*$/s, '');

/** Serves the endpoints for events before an app, and so before the rules of a gate: exact paths, on any host. */
export function serveEvents(app: StreamApp, receivers: readonly EventReceiver[]): StreamApp {
  if (receivers.length === 0) return app;
  return (exchange, target, wire) => {
    const path = pathOf(target);
    const receiver = receivers.find(({ serves }) => serves(path));
    if (receiver === undefined) return app(exchange, target, wire);
    // A stream that does not exist must not become a label of metrics.
    exchange.route = receiver.route;
    const { incoming, outgoing } = wire;
    const readBody = async (maxBytes: number): Promise<string | undefined> => {
      const body = await readNodeBody(incoming, maxBytes);
      // What follows is not read, and the next request could not be found.
      if (body === undefined) outgoing.shouldKeepAlive = false;
      return body;
    };
    const { request, connection } = exchange;
    return receiver
      .respond({ request, connection, readBody }, path)
      .then(({ status, headers, body }) => createAnswer(status, Object.entries(headers).flat(), body));
  };
}
