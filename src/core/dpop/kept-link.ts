import { attempt, limitTime } from '../attempt.ts';
import type { RedisLink, RedisLinks } from './redis-link.ts';

export interface KeptLinkOptions {
  /** Makes a connected link usable. */
  readonly prepare: (link: RedisLink) => Promise<unknown>;
  /** Called once a link is prepared, unless it was given up meanwhile. */
  readonly onReady?: (link: RedisLink) => void;
  readonly onAnswer?: () => void;
  /** Called when the connection comes and goes. Errors it throws, or rejects with, are ignored. */
  readonly onConnection: ((state: 'up' | 'down', cause?: unknown) => unknown) | undefined;
}

const connectSeconds = 5;
const reconnectMilliseconds = { least: 50, most: 1_000 } as const;

/** Creates a kept link; `connect` opens it. */
export function keepLink(
  links: RedisLinks,
  { prepare, onReady, onAnswer = () => undefined, onConnection }: KeptLinkOptions,
) {
  let link: RedisLink | undefined;
  let ready: RedisLink | undefined;
  let reported: 'up' | 'down' | undefined;
  /** Links in a row that came to nothing. */
  let failures = 0;
  let timer: NodeJS.Timeout | undefined;

  // Each failed attempt is an error: only the first is reported.
  const report = (state: 'up' | 'down', cause?: unknown): void => {
    if (state === reported) return;
    reported = state;
    attempt(onConnection, state, cause);
  };

  const connect = (): void => {
    const opened = links.open({ onError: (cause) => drop(opened, cause), onAnswer });
    link = opened;
    limit(opened.connect(), connectSeconds)
      .then(() => prepare(opened))
      .then(
        () => {
          if (opened !== link) return;
          ready = opened;
          failures = 0;
          onReady?.(opened);
          report('up');
        },
        (cause: unknown) => drop(opened, cause),
      );
  };

  const drop = (from: RedisLink, cause: unknown): void => {
    from.destroy();
    if (from !== link) return;
    link = ready = undefined;
    const { least, most } = reconnectMilliseconds;
    // Several instances should not come back in step.
    timer = setTimeout(connect, Math.min(least * 2 ** failures++, most) * (0.5 + Math.random() / 2)).unref();
    report('down', cause);
  };

  return {
    ready: (): RedisLink | undefined => ready,
    /** Reports whether a link was neither given up nor closed. */
    isCurrent: (each: RedisLink): boolean => each === link,
    connect,
    /** Gives a link up. Repeated for a command that was given up: it may have been in flight. */
    drop,
    close(): void {
      const closed = link;
      link = ready = undefined;
      clearTimeout(timer);
      closed?.destroy();
    },
  };
}

export class LateError extends Error {
  override readonly name = 'LateError';
}

/** Returns the response, or rejects with `LateError` after the seconds. */
export function limit<T>(response: Promise<T>, seconds: number): Promise<T> {
  return limitTime(response, seconds, () => Promise.reject(new LateError('Redis did not respond in time')));
}
