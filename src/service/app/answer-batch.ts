/** How many may wait for each other: nobody waits long for those behind it. */
const atMost = 32;

/** What is ready, and waits for the end of the turn. */
export interface Departures<T> {
  add(item: T): void;
  /** Lets all leave now: what they would leave by is about to be closed. */
  leaveNow(): void;
}

/**
 * Gathers what is ready within a turn of the event loop, and lets it leave together at the end of the turn. To send an
 * answer wakes its reader; one on this machine, as a proxy often is, is asleep again before the next call is judged. Of
 * those that are sent in one go only the first has to wake it. `leave` is given one item or more, in their order.
 */
export function createDepartures<T>(leave: (items: readonly T[]) => void): Departures<T> {
  let ready: T[] = [];
  const leaveNow = (): void => {
    if (ready.length === 0) return;
    const leaving = ready;
    ready = [];
    leave(leaving);
  };
  return {
    add(item) {
      if (ready.length === 0) setImmediate(leaveNow);
      ready.push(item);
      if (ready.length === atMost) leaveNow();
    },
    leaveNow,
  };
}
