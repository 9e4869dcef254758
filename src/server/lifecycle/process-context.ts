import type { Log } from '../observation/log.ts';
import type { Metrics } from '../observation/metrics.ts';
import type { Settings } from '../settings/settings.ts';
import type { Reloads } from './reload.ts';

/** Inputs of the parts of a process. */
export interface ProcessContext {
  readonly settings: Settings;
  /** Reads the settings again. Throws if they are invalid. */
  readonly readAgain: () => Settings;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly reloads: Reloads;
}
