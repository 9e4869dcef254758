/** Runs a handler. What it throws, or rejects with, is given to `answer`, which throws what is not its own to answer. */
export function answerThrown<T>(run: () => T | Promise<T>, answer: (error: unknown) => T): T | Promise<T> {
  let done: T | Promise<T>;
  try {
    done = run();
  } catch (error) {
    return answer(error);
  }
  return done instanceof Promise ? done.catch(answer) : done;
}
