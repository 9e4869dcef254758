/** Exit statuses of the commands (sysexits.h). */
export const exitCodes = { ok: 0, usage: 64, unavailable: 69, retry: 75, config: 78 } as const;

/** The service cannot start. The message is one sentence. */
export class StartFailure extends Error {
  override readonly name = 'StartFailure';
  readonly exitCode: number;

  constructor(message: string, cause?: unknown, exitCode: number = exitCodes.config) {
    super(message, { cause });
    this.exitCode = exitCode;
  }
}

export interface Shutdown {
  readonly requested: Promise<void>;
  request(): void;
}

export interface ShutdownOptions {
  readonly onSignal?: () => void;
}

/** Exit status of a process that a signal ended: 128 and its number. */
const exitStatuses = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Listens for SIGTERM and SIGINT. The first signal starts a graceful shutdown, or calls `onSignal`; the second exits. A
 * process with a channel to its parent also stops when the channel closes.
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
