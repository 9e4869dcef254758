import cluster from 'node:cluster';

/** Exit statuses of the commands (sysexits.h). */
export const exitCodes = { ok: 0, usage: 64, unavailable: 69, config: 78 } as const;

/** The service cannot start. The message is one sentence. */
export class StartFailure extends Error {
  override readonly name = 'StartFailure';
  readonly exitCode: number;

  constructor(message: string, cause?: unknown, exitCode: number = exitCodes.config) {
    super(message, { cause });
    this.exitCode = exitCode;
  }
}

/** Exit status of a process that a signal ended: 128 and its number. */
const exitStatuses = { SIGINT: 130, SIGTERM: 143 } as const;

/** Variable with the number of a process that a supervisor has started. */
export const numberVariable = 'SUPERVISED_PROCESS';

/** Number of this process, from 1; `undefined` without a supervisor. */
export const processNumber = process.send === undefined ? undefined : Number(process.env[numberVariable]) || undefined;

/** Milliseconds in which a supervised process receives one signal twice: from its group, and from the supervisor. */
const repeatInterval = 1000;

export function onSignal(signal: NodeJS.Signals, listener: () => void): void {
  let last = Number.NEGATIVE_INFINITY;
  process.on(signal, () => {
    const now = performance.now();
    if (processNumber !== undefined && now - last < repeatInterval) return;
    last = now;
    listener();
  });
}

let isReloadHeld = false;

/** Keeps a SIGHUP that arrives during startup: without a listener, it ends the process. */
export function holdReload(): void {
  process.on('SIGHUP', () => {
    isReloadHeld = true;
  });
}

/** Reports whether a SIGHUP arrived before this call. */
export const wasReloadHeld = (): boolean => isReloadHeld;

/** Lets this process finish its requests if its supervisor is killed: `node:cluster` would exit immediately. */
export function surviveSupervisor(): void {
  const { worker } = cluster;
  // A message to the killed supervisor.
  worker?.on('error', () => {});
  worker?.once('disconnect', () => {
    worker.exitedAfterDisconnect = true;
  });
}

/**
 * Listens for SIGTERM and SIGINT. The first signal starts a graceful shutdown; the second exits. A process with a channel
 * to its parent also stops when the channel closes.
 */
export function watchSignals() {
  /** Resolves when the parent process has ended, perhaps before this call: there is no time to drain. */
  const abandoned = new Promise<void>((resolve) => {
    if (process.send !== undefined && !process.connected) resolve();
    process.once('disconnect', resolve);
  });
  const requested = new Promise<void>((resolve) => {
    let seen = false;
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      onSignal(signal, () => {
        if (seen) process.exit(exitStatuses[signal]);
        seen = true;
        resolve();
      });
    }
    void abandoned.then(resolve);
  });
  return { requested, abandoned };
}
export type Shutdown = ReturnType<typeof watchSignals>;
