import { attempt } from '../attempt.ts';
import { checkOptionMembers } from '../option-members.ts';
import { type Access, expiryOf } from './access.ts';

/** Options of {@link endAtExpiry}. */
export interface EndAtExpiryOptions {
  /** Seconds since the epoch: the clock of the resource server, if it has its own. Default: the clock of this host. */
  readonly now?: () => number;
}

/**
 * Longest wait until the clock is read again, in seconds: it may have been set, or the host has slept. A timer of 2^31 ms or
 * more would fire immediately.
 */
const maxWait = 3600;

/**
 * Calls `close` once, when the token of an access expires: from then on, the resource server refuses the token. For connections
 * that last, such as WebSockets and event streams. The timer does not keep the process alive. Errors that `close` throws, or
 * rejects with, are ignored. Returns a function that cancels the call. Throws `TypeError` for a value that this copy of the
 * package has not granted.
 *
 * @example
 * const cancel = endAtExpiry(access, () => socket.close(1008, 'The token has expired.'));
 * socket.once('close', cancel);
 */
export function endAtExpiry(
  access: Access<unknown>,
  close: () => unknown,
  options: EndAtExpiryOptions = {},
): () => void {
  checkOptionMembers<EndAtExpiryOptions>('endAtExpiry', options, { now: true });
  if (typeof close !== 'function') throw new TypeError('endAtExpiry: close is a function');
  const { now = () => Date.now() / 1000 } = options;
  const expiry = expiryOf(access);
  if (expiry === undefined) {
    throw new TypeError('endAtExpiry: pass the access that this copy of portcullis has granted, and not a copy of it');
  }
  let timer: NodeJS.Timeout | undefined;
  const wait = (): void => {
    const seconds = Math.min(Math.max(expiry - now(), 0), maxWait);
    timer = setTimeout(() => (now() < expiry ? wait() : attempt(close)), Math.ceil(seconds * 1000));
    timer.unref?.(); // a number in runtimes whose timers hold nothing open
  };
  wait();
  return () => clearTimeout(timer);
}
