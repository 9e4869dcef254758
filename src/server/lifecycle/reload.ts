import type { Log } from '../observation/log.ts';

/** What is read again when the operator asks for it. */
export interface Reloads {
  /**
   * Adds what is called at each request, and immediately if there was one before. `reload` may throw or reject: the old
   * state must then stay in force.
   */
  add(reload: () => void | Promise<void>): void;
  /** Asks by other means than a signal. */
  request(): void;
}

/**
 * Listens for SIGHUP, and calls everything that can be reloaded. The signal never ends the process. A worker waits for
 * the word of the primary process instead, since a signal may reach all processes of a terminal.
 */
export function watchReloads(log: Log, { onSignal }: { readonly onSignal: 'reload' | 'ignore' }): Reloads {
  const reloads = new Set<() => void | Promise<void>>();
  let wasRequested = false;
  const request = (): void => {
    wasRequested = true;
    for (const reload of reloads) void run(reload, log);
  };
  process.on('SIGHUP', onSignal === 'reload' ? request : () => {});
  return {
    add(reload) {
      reloads.add(reload);
      // During startup a request may arrive between the first read of a file and this call.
      if (wasRequested) void run(reload, log);
    },
    request,
  };
}

async function run(reload: () => void | Promise<void>, log: Log): Promise<void> {
  try {
    await reload();
  } catch (error) {
    log.write('error', 'reload_failed', { problem: error instanceof Error ? error.message : 'unknown' });
  }
}
