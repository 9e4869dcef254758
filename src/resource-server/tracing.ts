import { type Span, SpanStatusCode, trace } from '@opentelemetry/api';
import { AccessError } from '../failures.ts';

// Without an SDK the API hands out spans that record nothing.
const tracer = trace.getTracer('portcullis');

/** Runs a judgement in a span `authorize` that carries its outcome: `granted`, or the reason of the refusal it returned. */
export function traceAuthorize<T>(judge: () => T | Promise<T>): T | Promise<T> {
  const span = tracer.startSpan('authorize');
  if (!span.isRecording()) return judge();
  try {
    const result = judge();
    if (result instanceof Promise) {
      return result.then(
        (settled) => {
          end(span, outcomeOf(settled));
          return settled;
        },
        (error: unknown) => {
          end(span, 'unexpected');
          throw error;
        },
      );
    }
    end(span, outcomeOf(result));
    return result;
  } catch (error) {
    end(span, 'unexpected');
    throw error;
  }
}

function outcomeOf(judged: unknown): string {
  return judged instanceof AccessError ? judged.reason : 'granted';
}

/** A refusal is an answer, not a fault of this program; what is unexpected is one. */
function end(span: Span, outcome: string): void {
  span.setAttribute('portcullis.outcome', outcome);
  if (outcome === 'unexpected') span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}
