import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createAnswerBatch } from '../src/server/http/answer.ts';

function open() {
  const sent: (readonly number[])[] = [];
  const { add, sendNow } = createAnswerBatch<number>((items) => sent.push(items));
  return { sent, finish: add, sendNow };
}

const count = (to: number) => Array.from({ length: to }, (_, i) => i);

describe('answers of one turn', () => {
  it('answers ready in one turn → sent together at its end, in order', async () => {
    const { sent, finish } = open();
    for (const item of [1, 2, 3]) finish(item);
    await Promise.resolve();
    expect(sent).toEqual([]);
    await setImmediate();
    expect(sent).toEqual([[1, 2, 3]]);
  });

  it('sent once → not again; what is ready later is sent later', async () => {
    const { sent, finish } = open();
    finish(1);
    await setImmediate();
    await setImmediate();
    expect(sent).toEqual([[1]]);
    finish(2);
    await setImmediate();
    expect(sent).toEqual([[1], [2]]);
  });

  it('32 are ready → sent without waiting for more', async () => {
    const { sent, finish } = open();
    for (const item of count(31)) finish(item);
    expect(sent).toEqual([]);
    finish(31);
    expect(sent).toEqual([count(32)]);
    finish(32);
    await setImmediate();
    expect(sent).toEqual([count(32), [32]]);
    await setImmediate();
    expect(sent).toHaveLength(2);
  });

  it('a connection is about to be closed → all are sent now, and not again', async () => {
    const { sent, finish, sendNow } = open();
    sendNow();
    expect(sent).toEqual([]);
    finish(1);
    finish(2);
    sendNow();
    expect(sent).toEqual([[1, 2]]);
    await setImmediate();
    expect(sent).toHaveLength(1);
  });

  it('ready while others are sent → sent in the next turn', async () => {
    const sent: (readonly number[])[] = [];
    const batch = createAnswerBatch<number>((items) => {
      sent.push(items);
      if (sent.length === 1) batch.add(2);
    });
    batch.add(1);
    await setImmediate();
    await setImmediate();
    expect(sent).toEqual([[1], [2]]);
  });
});
