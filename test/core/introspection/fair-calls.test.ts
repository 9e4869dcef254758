import { describe, expect, it } from 'vitest';
import { createFairCalls, type FairCallsOptions } from '../../../src/core/introspection/fair-calls.ts';

/** Calls that end when the test says so. */
function open(options: Partial<FairCallsOptions> = {}) {
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const calls = createFairCalls({
    maxCalls: 2,
    maxPerClient: 1,
    maxWaitingPerClient: 3,
    maxWaiting: 5,
    waitSeconds: 60,
    ...options,
  });
  const run = (client: string, name: string) =>
    calls.run(
      client,
      async () => {
        started.push(name);
        await new Promise<void>((resolve) => ends.set(name, resolve));
        return name;
      },
      () => 'too late',
    );
  const end = async (name: string): Promise<void> => {
    ends.get(name)?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { calls, run, end, started };
}

describe('calls that take turns', () => {
  it('one client floods → the others start at once, and it waits behind itself', async () => {
    const { run, end, started, calls } = open();
    for (const name of ['a1', 'a2', 'a3']) void run('a', name);
    void run('b', 'b1');
    expect([started, calls.running()]).toEqual([['a1', 'b1'], 2]);
    await end('a1');
    expect(started).toEqual(['a1', 'b1', 'a2']);
  });

  it('several clients wait → one turn each, the one that has waited longest first', async () => {
    const { run, end, started } = open({ maxCalls: 1 });
    for (const name of ['a1', 'a2', 'a3']) void run('a', name);
    for (const name of ['b1', 'b2']) void run('b', name);
    for (const name of ['a1', 'b1', 'a2', 'b2']) await end(name);
    expect(started).toEqual(['a1', 'b1', 'a2', 'b2', 'a3']);
  });

  it('too many wait, of one client or of all → undefined', () => {
    const { run } = open({ maxWaitingPerClient: 3, maxWaiting: 5 });
    for (const name of ['a1', 'a2', 'a3', 'a4']) expect(run('a', name)).toBeInstanceOf(Promise);
    expect(run('a', 'a5')).toBeUndefined();
    for (const name of ['b1', 'b2', 'b3']) expect(run('b', name)).toBeInstanceOf(Promise);
    expect(run('b', 'b4')).toBeUndefined();
  });

  it('a crowd has taken all places → a new client gets a place of the client with the most', async () => {
    const { run, end, started } = open({ maxWaitingPerClient: 3, maxWaiting: 5 });
    const waiting = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'b3'].map((name) => run(name.slice(0, 1), name));
    const late = expect(waiting[1]).resolves.toBe('too late');
    void run('c', 'c1');
    await late;
    // Two wait of each of the others now: nobody has more than one would have then.
    expect(run('c', 'c2')).toBeUndefined();
    await end('a1');
    expect(started).toEqual(['a1', 'b1', 'c1']);
  });

  it('clients that were turned away, or are done → none is kept', async () => {
    const { calls, run, end } = open({ maxCalls: 1, maxWaiting: 1 });
    void run('a', 'a1');
    void run('b', 'b1');
    for (let index = 0; index < 100; index++) expect(run(`c${index}`, 'never')).toBeUndefined();
    expect(calls.clients()).toBe(2);
    for (const name of ['a1', 'b1']) await end(name);
    expect(calls.clients()).toBe(0);
  });

  it('no turn in time → too late, and it takes no turn later', async () => {
    const { run, end, started } = open({ maxCalls: 1, waitSeconds: 0.01 });
    void run('a', 'a1');
    await expect(run('b', 'b1')).resolves.toBe('too late');
    await end('a1');
    expect(started).toEqual(['a1']);
    void run('b', 'b2');
    expect(started).toEqual(['a1', 'b2']);
  });

  it('no turn in time behind a call of the same client → too late, and the client keeps its place', async () => {
    const { run, end, started } = open({ waitSeconds: 0.01 });
    void run('a', 'a1');
    await expect(run('a', 'a2')).resolves.toBe('too late');
    const third = run('a', 'a3');
    expect(started).toEqual(['a1']);
    await end('a1');
    expect(started).toEqual(['a1', 'a3']);
    await end('a3');
    expect(await third).toBe('a3');
  });

  it('a call that fails → its error, and the next has its turn', async () => {
    const { calls, run, started } = open({ maxCalls: 1 });
    const failed = calls.run(
      'a',
      () => Promise.reject(new Error('broken')),
      () => 'too late',
    );
    void run('b', 'b1');
    await expect(failed).rejects.toThrow('broken');
    await new Promise((resolve) => setImmediate(resolve));
    expect(started).toEqual(['b1']);
  });
});
