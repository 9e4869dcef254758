import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createRefresher } from '../../src/keys/refresher.ts';

/** A refresher whose attempts stay in flight until they are settled, and what it did. */
function startRefresher() {
  const settle: { readonly ok: (dueInSeconds: number) => void; readonly fail: () => void }[] = [];
  const refresher = createRefresher({
    attempt: () =>
      new Promise((resolve, reject) => {
        settle.push({ ok: resolve, fail: () => reject(new Error('injected')) });
      }),
    onFailure: () => undefined,
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
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each([
    ['a retry', (each: { fail(): void }) => each.fail(), 1],
    ['a refresh ahead of need', (each: { ok(due: number): void }) => each.ok(8), 8],
  ])('%s is due while a request has begun an attempt → no second one beside it', async (_claim, end, dueInSeconds) => {
    const { refresher, settle } = startRefresher();
    void refresher.request(() => true);
    for (const each of settle) end(each);
    await vi.advanceTimersByTimeAsync(dueInSeconds * 1000 - 1);
    void refresher.request(() => true);
    expect(settle).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(1000);
    expect(settle).toHaveLength(2);
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
  expect(refresher.failure).toBeUndefined();
  expect(refresher.attempts).toEqual({ ok: 1, failed: 0 });
  refresher.stop();
});
