// A clock that advances only on request: timers of this process run on it, in order.

/** Takes the place of the timers of this process; `restore` gives them back. Times are in seconds. */
export function createSimulatedClock() {
  const { setTimeout: startTimer, clearTimeout: stopTimer, setImmediate: nextTurn } = globalThis;
  /** @type {{ at: number, order: number, act: () => void, isOff: boolean, unref(): void }[]} */
  const heap = [];
  let time = 0;
  let order = 0;

  const isBefore = (a, b) => a.at < b.at || (a.at === b.at && a.order < b.order);
  const swap = (i, j) => {
    [heap[i], heap[j]] = [heap[j], heap[i]];
  };

  function push(timer) {
    let i = heap.push(timer) - 1;
    for (let parent = (i - 1) >> 1; i > 0 && isBefore(heap[i], heap[parent]); parent = (i - 1) >> 1) {
      swap(i, parent);
      i = parent;
    }
  }

  function pop() {
    const [first] = heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    heap[0] = last;
    for (let i = 0; ; ) {
      const [left, right] = [2 * i + 1, 2 * i + 2];
      let least = i;
      if (left < heap.length && isBefore(heap[left], heap[least])) least = left;
      if (right < heap.length && isBefore(heap[right], heap[least])) least = right;
      if (least === i) return first;
      swap(i, least);
      i = least;
    }
  }

  const start = (act, milliseconds = 0) => {
    const timer = { at: time + milliseconds / 1000, order: order++, act, isOff: false, unref() {} };
    push(timer);
    return timer;
  };
  const stop = (timer) => {
    if (timer !== undefined) timer.isOff = true;
  };
  // Only these two are used by what runs on it; the types of Node want more of a timer.
  Object.assign(globalThis, { setTimeout: start, clearTimeout: stop });

  /** Everything that promises still have to do. */
  const settle = () => new Promise((resolve) => nextTurn(resolve));

  return {
    now: () => time,
    /** Calls a function after N seconds. */
    after: (seconds, act) => void start(act, seconds * 1000),
    /** Lets the time pass until then, one timer after the other. */
    async runUntil(end) {
      await settle();
      while (heap.length > 0 && heap[0].at <= end) {
        const { at } = heap[0];
        time = at;
        let hasActed = false;
        while (heap.length > 0 && heap[0].at === at) {
          const timer = pop();
          if (timer.isOff) continue;
          timer.act();
          hasActed = true;
        }
        if (hasActed) await settle();
      }
      time = end;
    },
    restore: () => void Object.assign(globalThis, { setTimeout: startTimer, clearTimeout: stopTimer }),
  };
}
