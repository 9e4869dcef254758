import { type Context, type ContextManager, context, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AccessError } from '../../../src/core/failures.ts';
import { Refused } from '../../../src/core/refused.ts';
import { traceAuthorize } from '../../../src/core/resource-server/events.ts';

const exporter = new InMemorySpanExporter();
const request = new Request('https://api.example/');

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

it('without an SDK: authorization runs unchanged', () => {
  const judged = Promise.resolve(1);
  expect(traceAuthorize(request, () => judged)).toBe(judged);
});

describe('an SDK that comes and goes', () => {
  const register = () => {
    const own = new InMemorySpanExporter();
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(own)] }));
    return own;
  };
  afterEach(() => trace.disable());

  it('registered after the first request → spans for later requests', async () => {
    await traceAuthorize(request, async () => 1);
    const own = register();
    await traceAuthorize(request, async () => 2);
    expect(own.getFinishedSpans().map(({ name }) => name)).toEqual(['authorize']);
  });

  it('replaced by another → the spans go to the other', async () => {
    const first = register();
    await traceAuthorize(request, async () => 1);
    trace.disable();
    await traceAuthorize(request, async () => 2);
    const second = register();
    await traceAuthorize(request, async () => 3);
    expect([first, second].map((own) => own.getFinishedSpans().length)).toEqual([1, 1]);
  });

  it('has a span that is active → it is the parent', async () => {
    const own = register();
    context.setGlobalContextManager(createContextManager());
    try {
      await trace.getTracer('app').startActiveSpan('request', async (parent) => {
        await traceAuthorize(request, async () => 1);
        parent.end();
      });
    } finally {
      context.disable();
    }
    const [authorize, parent] = own.getFinishedSpans();
    expect(authorize?.parentSpanContext?.spanId).toBe(parent?.spanContext().spanId);
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
    ['granted → granted', async () => 1, ['authorize', 'granted', 0]],
    ['refused → the reason', async () => new Refused('expired'), ['authorize', 'expired', 0]],
    ['refused by an AccessError → the reason', async () => refused, ['authorize', 'expired', 0]],
  ])('%s', async (_, judge, expected) => {
    expect(await traceAuthorize<unknown>(request, judge)).toEqual(await judge());
    expect(outcomes()).toEqual([expected]);
  });

  it('broken → an error', async () => {
    await expect(traceAuthorize<number>(request, () => Promise.reject(broken))).rejects.toBe(broken);
    expect(outcomes()).toEqual([['authorize', 'unexpected', 2]]);
  });
});
