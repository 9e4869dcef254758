import { setImmediate } from 'node:timers';

/** Calls a function of the application. Returns its result; `undefined` for a promise or an error, which is ignored. */
export function attempt<A extends readonly unknown[], T>(
  run: ((...args: A) => T) | undefined,
  ...args: A
): T | undefined {
  try {
    const returned: unknown = run?.(...args);
    if (!isThenable(returned)) return returned as T;
    // A promise of another library or realm can end the process too.
    Promise.resolve(returned).then(undefined, () => undefined);
  } catch {
    // The function of the application has failed, and not this one.
  }
  return undefined;
}

/**
 * Settles like the promise or, after a number of seconds, like the result of `late`. What arrived while this process was busy
 * is read first, and counts: after a stall the timers precede the reads.
 */
export async function limitTime<T>(promised: PromiseLike<T>, seconds: number, late: () => T | Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<T>((resolve) => {
    timer = setTimeout(() => setImmediate(() => resolve(late())), seconds * 1000);
  });
  try {
    return await Promise.race([promised, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Calls a function of the application on which a decision depends, and reads its result, which may be a promise. An error, a
 * rejection or more than 3 s is read by `failed`.
 */
export function ask<T>(
  run: () => unknown,
  read: (answer: unknown) => T,
  failed: (cause: unknown) => T,
): T | Promise<T> {
  try {
    const answer = run();
    return isThenable(answer) ? limitTime(answer, askSeconds, refuseLate).then(read, failed) : read(answer);
  } catch (cause) {
    return failed(cause);
  }
}

const askSeconds = 3;
const refuseLate = (): Promise<never> => Promise.reject(new Error(`no result within ${askSeconds} s`));

/** Reports whether a value is a promise, also one of another library or realm. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof Object(value).then === 'function';
}
