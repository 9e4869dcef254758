import { messageOf } from '../../core/shown-text.ts';
import type { Log } from '../observation/log.ts';
import { onSignal, wasReloadHeld } from './exit.ts';

/** Reloads on SIGHUP. The signal never ends the process. */
export function watchReloads(log: Log) {
  const reloads = new Set<() => void | Promise<void>>();
  let wasRequested = wasReloadHeld();
  onSignal('SIGHUP', () => {
    wasRequested = true;
    for (const reload of reloads) void runReload(reload, log);
  });
  return {
    /**
     * Adds a function, and calls it immediately if a reload was requested before. It may throw or reject: the old state must
     * then stay in force.
     */
    add(reload: () => void | Promise<void>): void {
      reloads.add(reload);
      // During startup a request may arrive between the first read of a file and this call.
      if (wasRequested) void runReload(reload, log);
    },
  };
}

export type Reloads = ReturnType<typeof watchReloads>;

/** Runs a function of a reload. The log reports its failure. */
export async function runReload(reload: () => void | Promise<void>, log: Log): Promise<void> {
  try {
    await reload();
  } catch (error) {
    log.write('error', 'reload_failed', { problem: messageOf(error) });
  }
}
