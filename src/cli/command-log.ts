import { createLog, type Log } from '../server/observation/log.ts';
import type { Settings } from '../server/settings/settings.ts';

/** The log of a command that runs the service: standard output, for people if it is a terminal. */
export function openCommandLog({ workers }: Pick<Settings, 'workers'>): Log {
  const { fd, isTTY } = process.stdout;
  return createLog({ fd, style: isTTY ? 'pretty' : 'json', shared: workers !== 1 });
}
