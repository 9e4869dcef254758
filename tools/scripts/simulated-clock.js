// A clock that advances only on request: timers of this process run on it, in order.

/** Takes the place of the timers of this process; `restore` gives them back. Times are in seconds. */
export function createSimulatedClock() {
  const { setTimeout: startTimer, clearTimeout: stopTimer, setImmediate: nextTurn } = globalThis;
  /** The next one last; of two at the same time, the one that was started first. @type {{ at: number, act: () => void, isOff: boolean, unref(): void }[]} */
  const timers = [];
  let time = 0;

  const start = (act, milliseconds = 0) => {
    const timer = { at: time + milliseconds / 1000, act, isOff: false, unref() {} };
    timers.splice(timers.findLastIndex(({ at }) => at > timer.at) + 1, 0, timer);
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
      for (let next = timers.at(-1); next !== undefined && next.at <= end; next = timers.at(-1)) {
        time = next.at;
        let hasActed = false;
        for (; timers.at(-1)?.at === time; ) {
          const timer = timers.pop();
          if (timer?.isOff !== false) continue;
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
