import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createRefresher } from '../../../src/core/keys/refresher.ts';

/** A refresher whose attempts stay in flight until they are settled, and what it did. */
function startRefresher(waiting: 'promise' | 'state' = 'promise') {
  const settle: { readonly ok: (dueInSeconds: number) => void; readonly fail: () => void }[] = [];
  const refresher = createRefresher({
    attempt: () =>
      new Promise((resolve, reject) => {
        settle.push({ ok: resolve, fail: () => reject(new Error('injected')) });
      }),
    onFailure: () => undefined,
    waiting,
    attemptSeconds: 3,
    timer: 'on',
    now: () => Date.now() / 1000,
    random: () => 0,
  });
  return { refresher, settle };
}

describe('one attempt at a time', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => vi.useRealTimers());

  it.each([
    ['a retry', (each: { fail(): void }) => each.fail(), 1],
    ['a refresh ahead of need', (each: { ok(due: number): void }) => each.ok(8), 8],
  ])(
    '%s is due while a request has begun an attempt → no second one at the same time',
    async (_claim, end, dueInSeconds) => {
      const { refresher, settle } = startRefresher();
      void refresher.request(() => true);
      for (const each of settle) end(each);
      await vi.advanceTimersByTimeAsync(dueInSeconds * 1000 - 1);
      void refresher.request(() => true);
      expect(settle).toHaveLength(2);
      await vi.advanceTimersByTimeAsync(1000);
      expect(settle).toHaveLength(2);
      refresher.stop();
    },
  );
});

describe('a request that waits for the attempt of another request, on Workers', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => vi.useRealTimers());

  async function startTwo(isAllowed = true) {
    const { refresher, settle } = startRefresher('state');
    const first = refresher.request(() => true);
    let isOver = false;
    const second = refresher
      .request(() => isAllowed)
      ?.then(() => {
        isOver = true;
      });
    await vi.advanceTimersByTimeAsync(1000);
    expect([isOver, settle.length]).toEqual([false, 1]);
    return { refresher, settle, first, second, isOver: () => isOver };
  }

  it('the attempt ends → over soon, without its promise and without a second attempt', async () => {
    const { refresher, settle, first, isOver } = await startTwo();
    settle[0]?.ok(60);
    await first;
    expect(isOver()).toBe(false);
    await vi.advanceTimersByTimeAsync(100);
    expect([isOver(), settle.length]).toEqual([true, 1]);
    refresher.stop();
  });

  it('the attempt never ends → a new attempt after 3 s, which later requests await', async () => {
    const { refresher, settle, isOver } = await startTwo();
    await vi.advanceTimersByTimeAsync(2000);
    expect(settle).toHaveLength(2);
    // The first ends late: it is no longer the one in flight.
    settle[0]?.fail();
    await vi.advanceTimersByTimeAsync(100);
    void refresher.request(() => true);
    expect([isOver(), settle.length]).toEqual([false, 2]);
    settle[1]?.ok(60);
    await vi.advanceTimersByTimeAsync(100);
    expect([isOver(), settle.length]).toEqual([true, 2]);
    refresher.stop();
  });

  it.each<[string, boolean, (refresher: { stop(): void }) => void]>([
    ['and another is not allowed', false, () => undefined],
    ['and the refresher is stopped', true, (refresher) => refresher.stop()],
  ])('the attempt never ends, %s → over, without another attempt', async (_claim, isAllowed, act) => {
    const { refresher, settle, isOver } = await startTwo(isAllowed);
    act(refresher);
    await vi.advanceTimersByTimeAsync(2000);
    expect([isOver(), settle.length]).toEqual([true, 1]);
    refresher.stop();
  });
});

it('a timer that is a number, as some runtimes have it → the attempt has succeeded', async () => {
  const { refresher, settle } = startRefresher();
  const attempt = refresher.request(() => true);
  const setTimer = vi.spyOn(globalThis, 'setTimeout').mockReturnValue(7 as never); // typed for Node alone
  for (const each of settle) each.ok(8);
  await attempt;
  setTimer.mockRestore();
  expect(refresher.state().failure).toBeUndefined();
  expect(refresher.attempts).toEqual({ ok: 1, failed: 0 });
  refresher.stop();
});
