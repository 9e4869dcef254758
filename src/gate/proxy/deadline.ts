export type Deadline = ReturnType<typeof createDeadline>;

/**
 * Calls back after a time without progress. What has arrived by then is read before: after a stall of this process the timers
 * precede the reads.
 */
export function createDeadline(milliseconds: number, callback: () => void) {
  let isDue = false;
  const timer = setTimeout(() => {
    isDue = true;
    setImmediate(() => {
      if (isDue) callback();
    });
  }, milliseconds);
  return {
    /** Notes progress: the time begins again. */
    refresh(): void {
      isDue = false;
      timer.refresh();
    },
    clear(): void {
      isDue = false;
      clearTimeout(timer);
    },
  };
}
