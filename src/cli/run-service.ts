import type { OpenConsole } from '../server/console/opened-console.ts';
import { processNumber } from '../server/lifecycle/exit.ts';
import { createLog } from '../server/observation/log.ts';
import { run } from '../server/process/run.ts';
import type { Command } from '../server/process/service.ts';
import { numberSettings } from '../server/process/supervisor.ts';
import { requireSettings, warnOfSettings } from '../server/settings/running-settings.ts';
import type { SettingsResult } from '../server/settings/settings.ts';
import { requireValid } from './commands/failure.ts';

type Problems = Extract<SettingsResult, { kind: 'problems' }>;
type Read = Exclude<SettingsResult, Problems>;

/** Runs a command that listens, until a stop request. `read` reads its settings, again for a reload. */
export async function runService<R extends Read>(
  environment: NodeJS.ProcessEnv,
  read: () => R | Problems,
  createCommand: (result: R) => Command,
): Promise<number> {
  const readHere = () => {
    const result = read();
    return result.kind === 'problems' ? result : { ...result, settings: numberSettings(result.settings) };
  };
  const result = requireValid(readHere());
  const { settings } = result;
  const { fd, isTTY } = process.stdout;
  // A terminal is for people.
  const style = isTTY ? 'pretty' : 'json';
  const log = createLog({ fd, style, shared: settings.workers !== 1, selection: settings });
  const command = createCommand(result);
  // Each process of a supervisor reads them too.
  if (processNumber === undefined) warnOfSettings(result, command.name, log);
  const readAgain = () => requireSettings(readHere());
  const openConsole: OpenConsole = async (options) => {
    // Loaded only if the console is on.
    const { createOpenConsole } = await import('../console/server/open-console.ts');
    const { openTries } = await import('../dev/tries/tries.ts');
    const { labelDev } = await import('./explain/labels.ts');
    const runTry = openTries(environment);
    return createOpenConsole(runTry, runTry && labelDev)(options);
  };
  try {
    return await run({ settings, readAgain, environment, log, command, openConsole });
  } finally {
    await log.end();
  }
}
