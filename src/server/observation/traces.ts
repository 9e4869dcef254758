import type { Span, TextMapGetter } from '@opentelemetry/api';
import type { ResourceRequest } from '../../http/request.ts';
import type { Exchange } from '../http/exchange.ts';

type Api = typeof import('@opentelemetry/api');

/** Where each copy of the API keeps what an SDK has registered. Without one there is nothing to trace for. */
const registry = Symbol.for('opentelemetry.js.api.1');
const globals = globalThis as { readonly [registry]?: { readonly trace?: object } }; // only the API writes there

let api: Api | 'missing' | undefined;

/** Loads the API once an SDK is there; whoever has an SDK has the API. */
function findApi(): Api | undefined {
  if (globals[registry]?.trace === undefined) return undefined;
  if (api === undefined) {
    api = 'missing';
    import('@opentelemetry/api').then(
      (loaded) => {
        api = loaded;
      },
      () => {}, // an SDK that brings its own copy, out of reach from here
    );
  }
  return api === 'missing' ? undefined : api;
}

const headers: TextMapGetter<ResourceRequest['headers']> = {
  get: (carrier, key) => carrier.get(key) ?? undefined,
  keys: () => [],
};

/**
 * Runs the work of a request in a server span of the HTTP conventions, which continues the caller's trace (W3C Trace
 * Context). Without an SDK it only runs the work. `state` is handed on as it is, so that the work can be one function for
 * all requests.
 */
export function traceRequest<S, T>(exchange: Exchange, work: (exchange: Exchange, state: S) => T, state: S): T {
  const loaded = findApi();
  if (loaded === undefined) return work(exchange, state);
  const { context, propagation, SpanKind, trace } = loaded;
  const { request } = exchange;
  const caller = propagation.extract(context.active(), request.headers, headers);
  const span = trace
    .getTracer('portcullis')
    .startSpan(
      request.method,
      { kind: SpanKind.SERVER, attributes: { 'http.request.method': request.method } },
      caller,
    );
  exchange.span = span;
  return context.with(trace.setSpan(caller, span), () => work(exchange, state));
}

/** Ends the span of a request that was answered. */
export function endRequestSpan({ span, request, route, reason }: Exchange, status: number): void {
  if (span === undefined) return;
  span.updateName(`${request.method} ${route}`);
  span.setAttribute('http.route', route);
  span.setAttribute('http.response.status_code', status);
  if (reason !== undefined) span.setAttribute('portcullis.reason', reason);
  if (status >= 500) {
    span.setAttribute('error.type', String(status));
    span.setStatus({ code: 2 }); // `SpanStatusCode.ERROR`
  }
  span.end();
}

/** The trace that a request belongs to: of its span, else of the caller (`traceparent`). */
export function readTraceId({
  span,
  request,
}: {
  readonly span: Span | undefined;
  readonly request: ResourceRequest;
}): string | undefined {
  if (span !== undefined) return span.spanContext().traceId;
  const parent = request.headers.get('traceparent');
  return parent === null ? undefined : /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/.exec(parent)?.[1];
}
