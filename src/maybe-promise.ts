/** A value that is here, or a promise of one: most judgements have nothing to wait for. */
export type MaybePromise<T> = T | Promise<T>;

/**
 * Goes on with a value: at once if it is here, later if it is promised. `state` is handed on as it is, so that a step
 * can be one function for all requests, and nothing is allocated for a value that is here.
 */
export function after<T, S, R>(
  value: MaybePromise<T>,
  next: (value: T, state: S) => MaybePromise<R>,
  state: S,
): MaybePromise<R> {
  return value instanceof Promise ? value.then((settled) => next(settled, state)) : next(value, state);
}

/** Goes on with what `run` gives, or with what it throws or rejects with. What `next` itself throws is the caller's. */
export function settle<T, R>(
  run: () => MaybePromise<T>,
  next: (value: T) => MaybePromise<R>,
  fail: (error: unknown) => MaybePromise<R>,
): MaybePromise<R> {
  let value: MaybePromise<T>;
  try {
    value = run();
  } catch (error) {
    return fail(error);
  }
  return value instanceof Promise ? value.then(next, fail) : next(value);
}

/** The same value; if it is promised and the promise rejects, what `fail` makes of the error. */
export function rescue<T>(value: MaybePromise<T>, fail: (error: unknown) => T): MaybePromise<T> {
  return value instanceof Promise ? value.catch(fail) : value;
}

/** For a value that goes on as it is. */
export function same<T>(value: T): T {
  return value;
}
