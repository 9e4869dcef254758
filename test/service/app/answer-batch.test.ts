import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createDepartures } from '../../../src/service/app/answer-batch.ts';

function open() {
  const left: (readonly number[])[] = [];
  const { add, leaveNow } = createDepartures<number>((items) => left.push(items));
  return { left, depart: add, leaveNow };
}

const count = (to: number) => Array.from({ length: to }, (_, i) => i);

describe('departures', () => {
  it('what is ready in one turn → leaves together at its end, in order', async () => {
    const { left, depart } = open();
    for (const item of [1, 2, 3]) depart(item);
    await Promise.resolve();
    expect(left).toEqual([]);
    await setImmediate();
    expect(left).toEqual([[1, 2, 3]]);
  });

  it('nothing more → nothing leaves twice; what comes later leaves later', async () => {
    const { left, depart } = open();
    depart(1);
    await setImmediate();
    await setImmediate();
    expect(left).toEqual([[1]]);
    depart(2);
    await setImmediate();
    expect(left).toEqual([[1], [2]]);
  });

  it('32 are ready → they wait for no more', async () => {
    const { left, depart } = open();
    for (const item of count(31)) depart(item);
    expect(left).toEqual([]);
    depart(31);
    expect(left).toEqual([count(32)]);
    depart(32);
    await setImmediate();
    expect(left).toEqual([count(32), [32]]);
    await setImmediate();
    expect(left).toHaveLength(2);
  });

  it('a connection is about to be closed → all leave now, and not again', async () => {
    const { left, depart, leaveNow } = open();
    leaveNow();
    expect(left).toEqual([]);
    depart(1);
    depart(2);
    leaveNow();
    expect(left).toEqual([[1, 2]]);
    await setImmediate();
    expect(left).toHaveLength(1);
  });

  it('what becomes ready as others leave → leaves by itself', async () => {
    const left: (readonly number[])[] = [];
    const departures = createDepartures<number>((items) => {
      left.push(items);
      if (left.length === 1) departures.add(2);
    });
    departures.add(1);
    await setImmediate();
    await setImmediate();
    expect(left).toEqual([[1], [2]]);
  });
});
