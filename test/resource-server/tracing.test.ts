import { type Context, type ContextManager, context, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AccessError } from '../../src/failures.ts';
import { traceAuthorize } from '../../src/resource-server/tracing.ts';

const exporter = new InMemorySpanExporter();

function outcomes(): readonly unknown[] {
  return exporter
    .getFinishedSpans()
    .map(({ name, attributes, status }) => [name, attributes['portcullis.outcome'], status.code]);
}

/** Keeps the context of calls that end before they return. */
function createContextManager(): ContextManager {
  let current: Context = ROOT_CONTEXT;
  const manager: ContextManager = {
    active: () => current,
    with(entered, run, self, ...args) {
      const before = current;
      current = entered;
      try {
        return run.apply(self as ThisParameterType<typeof run>, args); // as the caller of the API wants it
      } finally {
        current = before;
      }
    },
    bind: (_, target) => target,
    enable: () => manager,
    disable: () => manager,
  };
  return manager;
}

describe('without an SDK', () => {
  it('a judgement runs as it is', () => {
    expect(traceAuthorize(() => 1)).toBe(1);
  });
});

describe('an SDK that comes and goes', () => {
  const register = () => {
    const own = new InMemorySpanExporter();
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(own)] }));
    return own;
  };
  afterEach(() => trace.disable());

  it('registered after the first judgement → its spans from then on', () => {
    void traceAuthorize(() => 1);
    const own = register();
    void traceAuthorize(() => 2);
    expect(own.getFinishedSpans().map(({ name }) => name)).toEqual(['authorize']);
  });

  it('replaced by another → the spans go to the other', () => {
    const first = register();
    void traceAuthorize(() => 1);
    trace.disable();
    void traceAuthorize(() => 2);
    const second = register();
    void traceAuthorize(() => 3);
    expect([first, second].map((own) => own.getFinishedSpans().length)).toEqual([1, 1]);
  });

  it('has a span that is active → it is the parent', () => {
    const own = register();
    context.setGlobalContextManager(createContextManager());
    try {
      trace.getTracer('app').startActiveSpan('request', (parent) => {
        void traceAuthorize(() => 1);
        parent.end();
      });
    } finally {
      context.disable();
    }
    const [authorize, request] = own.getFinishedSpans();
    expect(authorize?.parentSpanContext?.spanId).toBe(request?.spanContext().spanId);
  });
});

describe('with an SDK', () => {
  beforeEach(() => {
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
    exporter.reset();
  });
  afterAll(() => trace.disable());

  const refused = new AccessError('expired');
  const broken = new Error('broken');

  it.each([
    ['granted at once → granted', () => 1, ['authorize', 'granted', 0]],
    ['granted later → granted', () => Promise.resolve(1), ['authorize', 'granted', 0]],
    ['refused at once → the reason', () => refused, ['authorize', 'expired', 0]],
    ['refused later → the reason', () => Promise.resolve(refused), ['authorize', 'expired', 0]],
  ])('%s', async (_, judge, expected) => {
    expect(await traceAuthorize<unknown>(judge)).toBe(await judge());
    expect(outcomes()).toEqual([expected]);
  });

  const fail = () => {
    throw broken;
  };

  it.each([
    ['broken at once', fail],
    ['broken later', () => Promise.reject(broken)],
  ])('%s → an error', async (_, judge) => {
    await expect((async () => traceAuthorize<number>(judge))()).rejects.toBe(broken);
    expect(outcomes()).toEqual([['authorize', 'unexpected', 2]]);
  });
});
