import { trace } from '@opentelemetry/api';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { AccessError } from '../../src/failures.ts';
import { traceAuthorize } from '../../src/resource-server/tracing.ts';

const exporter = new InMemorySpanExporter();

function outcomes(): readonly unknown[] {
  return exporter
    .getFinishedSpans()
    .map(({ name, attributes, status }) => [name, attributes['portcullis.outcome'], status.code]);
}

describe('without an SDK', () => {
  it('a judgement runs as it is', () => {
    expect(traceAuthorize(() => 1)).toBe(1);
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
