import type { HttpBindings } from '@hono/node-server';
import type { AppBindings, Exchange } from './app.ts';
import type { Fetch } from './listener.ts';
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';

/** What is put around the app. */
export interface ObserveOptions {
  readonly fetch: (request: Request, bindings: AppBindings) => Response | Promise<Response>;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Puts one log line and the request metrics around an app. */
export function observe({ fetch, log, metrics }: ObserveOptions): Fetch {
  const requests = metrics.counter('portcullis_requests_total', 'Requests by route and status.');
  const refusals = metrics.counter('portcullis_refusals_total', 'Refused requests by reason.');
  const latency = metrics.histogram('portcullis_request_seconds', 'Time from request to answer.');

  const record = (exchange: Exchange, request: Request, response: Response, startedAt: number): Response => {
    const { status } = response;
    const seconds = (performance.now() - startedAt) / 1000;
    const { id, route, reason, context, cause } = exchange;
    requests.add(`{route="${route}",status="${status}"}`);
    latency.observe(seconds);
    if (reason !== undefined) refusals.add(`{reason="${reason}"}`);
    log.write(status >= 500 ? 'error' : 'info', 'request', {
      id,
      method: request.method,
      route,
      status,
      reason,
      ms: Math.round(seconds * 1e6) / 1e3,
      ...context,
      ...(cause !== undefined && { cause: describeCause(cause) }),
    });
    // Who asks why a call was refused has something to ask with.
    if (status >= 400) response.headers.set('x-request-id', id);
    return response;
  };

  return (request: Request, { incoming }: HttpBindings) => {
    const startedAt = performance.now();
    const exchange: Exchange = { id: nextRequestId(), route: 'unmatched' };
    const response = fetch(request, { connection: incoming.socket, exchange });
    return response instanceof Promise
      ? response.then((settled) => record(exchange, request, settled, startedAt))
      : record(exchange, request, response, startedAt);
  };
}

/** Unlike another process's ids, short, and cheap to make. */
const idPrefix = Math.random().toString(36).slice(2, 8);
let requestCount = 0;

function nextRequestId(): string {
  return `${idPrefix}-${(requestCount++).toString(36)}`;
}

/** The name and message of an error of this program's own making; never of input. */
function describeCause(cause: unknown): string {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : 'not an error';
}
