import { type Span, SpanStatusCode, trace } from '@opentelemetry/api';
import { AccessError } from './failures.ts';

// Without an SDK the API hands out spans that record nothing.
const tracer = trace.getTracer('portcullis');

/** Runs a judgement in a span `authorize` that carries its outcome: `granted`, or the reason of the refusal. */
export function traceAuthorize<T>(judge: () => T | Promise<T>): T | Promise<T> {
  const span = tracer.startSpan('authorize');
  if (!span.isRecording()) return judge();
  try {
    const result = judge();
    if (result instanceof Promise) {
      return result.then(
        (granted) => {
          end(span, 'granted');
          return granted;
        },
        (error: unknown) => {
          end(span, outcomeOf(error));
          throw error;
        },
      );
    }
    end(span, 'granted');
    return result;
  } catch (error) {
    end(span, outcomeOf(error));
    throw error;
  }
}

function outcomeOf(error: unknown): string {
  return error instanceof AccessError ? error.reason : 'unexpected';
}

/** A refusal is an answer, not a fault of this program; what is unexpected is one. */
function end(span: Span, outcome: string): void {
  span.setAttribute('portcullis.outcome', outcome);
  if (outcome === 'unexpected') span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}
