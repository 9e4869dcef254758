import type { Attributes, TextMapGetter, TextMapSetter } from '@opentelemetry/api';
import { limitTime } from '../../core/attempt.ts';
import type { ResourceRequest } from '../../core/http/request.ts';
import { findTracerProvider, readClientTrace } from '../../core/resource-server/events.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Log } from './log.ts';

type Api = typeof import('@opentelemetry/api');

let api: Api | 'missing' | undefined;

/** Settings of an SDK that show that traces are expected. */
const expectation = ['OTEL_TRACES_EXPORTER', 'OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];
const registerFix =
  'Load a file that starts the SDK and sets its context manager and propagator before the service: NODE_OPTIONS="--import FILE".';
const apiFix = 'Install @opentelemetry/api next to portcullis.';

/**
 * Loads the API of a registered SDK before the first request: next to this package, never from the working directory.
 * Logs one warning if traces are expected and cannot be recorded.
 */
export async function openTraces(
  environment: Readonly<Record<string, string | undefined>>,
  log: Pick<Log, 'write'> | undefined,
): Promise<void> {
  const { OTEL_SDK_DISABLED: disabled = '' } = environment;
  const setting = expectation.find((name) => !['', 'none'].includes(environment[name] ?? ''));
  if (findTracerProvider() === undefined) {
    if (setting === undefined || disabled.toLowerCase() === 'true') return;
    const problem = 'no SDK of OpenTelemetry is loaded';
    log?.write('warn', 'traces_not_recorded', { setting, problem, fix: registerFix });
    return;
  }
  try {
    api = await import('@opentelemetry/api');
  } catch (error) {
    api = 'missing';
    const problem = '@opentelemetry/api cannot be loaded';
    log?.write('warn', 'traces_not_recorded', { problem, error: String(error), fix: apiFix });
  }
}

/** Returns the API, also if the SDK was registered after {@link openTraces}: then the spans begin a little later. */
function findApi(): Api | undefined {
  if (findTracerProvider() === undefined) return undefined;
  if (api === undefined) void openTraces(process.env, undefined);
  return api === 'missing' ? undefined : api;
}

const headers: TextMapGetter<ResourceRequest['headers']> = {
  get: (carrier, key) => carrier.get(key) ?? undefined,
  keys: () => [],
};

const setter: TextMapSetter<Map<string, string>> = {
  set: (carrier, key, value) => void carrier.set(key.toLowerCase(), value),
};

/**
 * Runs the work of a request in a server span of the HTTP conventions, which continues the client's trace (W3C Trace
 * Context). Without an SDK it only runs the work. `state` lets one function serve all requests.
 */
export function traceRequest<S, T>(exchange: Exchange, work: (exchange: Exchange, state: S) => T, state: S): T {
  const loaded = findApi();
  if (loaded === undefined) return work(exchange, state);
  const { context, propagation, SpanKind, trace } = loaded;
  const { request } = exchange;
  const caller = propagation.extract(context.active(), request.headers, headers);
  const span = trace
    .getTracer('portcullis')
    .startSpan(request.method, { kind: SpanKind.SERVER, attributes: describeRequest(request) }, caller);
  exchange.span = span;
  return context.with(trace.setSpan(caller, span), () => work(exchange, state));
}

/** Attributes of the HTTP conventions that are known before the response. The query can hold secrets, and is omitted. */
function describeRequest({ method, url }: ResourceRequest): Attributes {
  const { protocol, pathname } = URL.canParse(url) ? new URL(url) : { protocol: '', pathname: '' };
  return { 'http.request.method': method, 'url.scheme': protocol.slice(0, -1), 'url.path': pathname };
}

/** Returns the headers, by names in lower case, that continue the trace in the span of this service; `undefined` without a span. */
export function propagateTrace({ span }: Pick<Exchange, 'span'>): ReadonlyMap<string, string> | undefined {
  if (span === undefined || api === undefined || api === 'missing') return undefined;
  const { context, propagation, trace } = api;
  const sent = new Map<string, string>();
  propagation.inject(trace.setSpan(context.active(), span), sent, setter);
  return sent;
}

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

/** Reads the id of the trace: of the span, otherwise of the client (`traceparent`). */
export function readTraceId({ span, request }: Pick<Exchange, 'span' | 'request'>): string | undefined {
  return span === undefined ? readClientTrace(request) : span.spanContext().traceId;
}

interface Provider {
  readonly forceFlush?: () => Promise<void>;
  readonly getDelegate?: () => Provider;
}

/** Seconds for the last spans. */
const maxFlush = 1;

/** Flushes the last spans of the registered SDK. An SDK usually does so on SIGTERM, which a worker does not receive. */
export async function flushSpans(): Promise<void> {
  const provider = findTracerProvider() as Provider | undefined; // of an SDK
  const delegate = provider?.getDelegate?.() ?? provider;
  const flush = async (): Promise<void> => delegate?.forceFlush?.();
  // The SDK reports its own failures.
  await limitTime(
    flush().catch(() => undefined),
    maxFlush,
    () => undefined,
  );
}
