/** No answer waits for more than this many others. */
const maxBatch = 32;

/** The answers that are ready and wait for the end of the turn. */
export interface AnswerBatch<T> {
  add(answer: T): void;
  /** Sends all of them now: their connections are about to be closed. */
  sendNow(): void;
}

/**
 * Gathers the answers that become ready within a turn of the event loop, and sends them together at the end of the turn.
 * Sending an answer wakes its reader. A reader on this machine, as a proxy often is, sleeps again before the next call is
 * judged. When answers are sent together, only the first has to wake the reader. `send` is given one or more, in order.
 */
export function createAnswerBatch<T>(send: (answers: readonly T[]) => void): AnswerBatch<T> {
  let ready: T[] = [];
  const sendNow = (): void => {
    if (ready.length === 0) return;
    const answers = ready;
    ready = [];
    send(answers);
  };
  return {
    add(answer) {
      if (ready.length === 0) setImmediate(sendNow);
      ready.push(answer);
      if (ready.length === maxBatch) sendNow();
    },
    sendNow,
  };
}
