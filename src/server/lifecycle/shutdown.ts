/** The wish to stop: a signal, or a word from the primary process. */
export interface Shutdown {
  /** Settles on the first wish. */
  readonly requested: Promise<void>;
  /** Asks by other means than a signal; asking twice is asking once. */
  request(): void;
}

/** What is done at the first signal; by default it is the wish to stop. */
export interface ShutdownOptions {
  readonly onSignal?: () => void;
}

/** Exit status of a process that a signal ended: 128 and its number. */
const exitStatuses = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Listens for SIGTERM and SIGINT: the first asks for a graceful end, a second one exits at once. A process that was
 * started with a channel to its parent also ends when the parent is gone.
 */
export function watchSignals(options: ShutdownOptions = {}): Shutdown {
  let request = () => {};
  const requested = new Promise<void>((resolve) => {
    request = resolve;
  });
  const { onSignal = request } = options;
  let seen = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (seen) process.exit(exitStatuses[signal]);
      seen = true;
      onSignal();
    });
  }
  process.once('disconnect', request);
  return { requested, request };
}
