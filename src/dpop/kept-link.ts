import { attempt } from '../attempt.ts';
import type { RedisLink, RedisLinks } from './redis-link.ts';

/** A link to Redis that is opened again after each loss. */
export interface KeptLink {
  /** The link, once it is prepared. */
  readonly ready: RedisLink | undefined;
  /** Reports whether a link was neither given up nor closed. */
  isCurrent(link: RedisLink): boolean;
  /** Opens the first link. */
  connect(): void;
  /** Gives a link up. Repeated for a command that was given up: it may have been in flight. */
  drop(link: RedisLink, cause: unknown): void;
  /** Ends the link for good. */
  close(): void;
}

/** Parts of a kept link. */
export interface KeptLinkOptions<T> {
  /** Makes a link usable. */
  readonly prepare: (link: RedisLink) => Promise<T>;
  /** Called with what `prepare` resolved with, unless the link was given up meanwhile. */
  readonly onReady: (link: RedisLink, prepared: T) => void;
  readonly onAnswer: () => void;
  /** Called when the connection comes and goes. Errors it throws, or rejects with, are ignored. */
  readonly onConnection: ((state: 'up' | 'down', cause?: unknown) => unknown) | undefined;
}

// Milliseconds.
const minReconnectDelay = 50;
const maxReconnectDelay = 1_000;

/** Creates a kept link; `connect` opens it. */
export function keepLink<T>(links: RedisLinks, options: KeptLinkOptions<T>): KeptLink {
  const { prepare, onReady, onAnswer, onConnection } = options;
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
    prepare(opened).then(
      (prepared) => {
        if (opened !== link) return;
        ready = opened;
        failures = 0;
        onReady(opened, prepared);
        report('up');
      },
      (cause: unknown) => drop(opened, cause),
    );
  };

  const drop = (from: RedisLink, cause: unknown): void => {
    from.destroy();
    if (from !== link) return;
    link = ready = undefined;
    const delay = Math.min(minReconnectDelay * 2 ** failures++, maxReconnectDelay);
    // Several instances should not come back in step.
    timer = setTimeout(connect, delay * (0.5 + Math.random() / 2)).unref();
    report('down', cause);
  };

  return {
    get ready() {
      return ready;
    },
    isCurrent: (each) => each === link,
    connect,
    drop,
    close() {
      const closed = link;
      link = ready = undefined;
      clearTimeout(timer);
      closed?.destroy();
    },
  };
}
