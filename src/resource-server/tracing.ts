import type { Span, Tracer, TracerProvider } from '@opentelemetry/api';
import { AccessError } from '../failures.ts';
import { type MaybePromise, settle } from '../maybe-promise.ts';

/**
 * The place where each copy of `@opentelemetry/api` 1.x keeps what an SDK has registered. It is read directly: loading
 * that package would take half of the time that this library takes to load, and who has an SDK has loaded it.
 */
const registry = Symbol.for('opentelemetry.js.api.1');
const globals = globalThis as { readonly [registry]?: { readonly trace?: TracerProvider } }; // only the API writes there

/** `errorStatus` of the API. */
const errorStatus = 2;

let provider: TracerProvider | undefined;
let tracer: Tracer | undefined;

/** The tracer of the SDK that is registered now. An SDK can come after this library, and can leave before it. */
function findTracer(): Tracer | undefined {
  const current = globals[registry]?.trace;
  if (current !== provider) {
    provider = current;
    tracer = current?.getTracer('portcullis');
  }
  return tracer;
}

/** Runs a judgement in a span `authorize` that carries its outcome: `granted`, or the reason of the refusal it returned. */
export function traceAuthorize<T>(judge: () => MaybePromise<T>): MaybePromise<T> {
  const span = findTracer()?.startSpan('authorize');
  if (span === undefined || !span.isRecording()) return judge();
  return settle(
    judge,
    (judged) => {
      end(span, outcomeOf(judged));
      return judged;
    },
    (error) => {
      end(span, 'unexpected');
      throw error;
    },
  );
}

function outcomeOf(judged: unknown): string {
  return judged instanceof AccessError ? judged.reason : 'granted';
}

/** A refusal is an answer, not a fault of this program; what is unexpected is one. */
function end(span: Span, outcome: string): void {
  span.setAttribute('portcullis.outcome', outcome);
  if (outcome === 'unexpected') span.setStatus({ code: errorStatus });
  span.end();
}
