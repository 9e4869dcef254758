import cluster from 'node:cluster';
import { consoleLoader } from '../console/server/console-loader.ts';
import { exitCodes, StartFailure } from '../server/lifecycle/exit.ts';
import { createLog, type Log } from '../server/observation/log.ts';
import { run } from '../server/process/run.ts';
import type { Command } from '../server/process/service.ts';
import { requireSettings, warnOfSettings } from '../server/settings/running-settings.ts';
import { formatProblems } from '../server/settings/setting-report.ts';
import type { Settings, SettingsResult } from '../server/settings/settings.ts';

type Problems = Extract<SettingsResult, { kind: 'problems' }>;
type Read = Exclude<SettingsResult, Problems>;

/** The log of a command that runs the service: standard output, for people if it is a terminal. */
function openCommandLog(settings: Pick<Settings, 'workers' | 'logFormat' | 'logLevel' | 'logGrants'>): Log {
  const { fd, isTTY } = process.stdout;
  const style = isTTY ? 'pretty' : settings.logFormat === 'ecs' ? 'ecs' : 'json';
  return createLog({ fd, style, shared: settings.workers !== 1, selection: settings });
}

/** Runs a command that listens, until a stop request. `read` reads its settings, again for a reload. */
export async function runCommand<R extends Read>(
  environment: NodeJS.ProcessEnv,
  read: () => R | Problems,
  createCommand: (result: R) => Command,
): Promise<number> {
  const result = read();
  if (result.kind === 'problems') {
    process.stderr.write(formatProblems(result.problems));
    return exitCodes.config;
  }
  const { settings } = result;
  const log = openCommandLog(settings);
  const command = createCommand(result);
  // Each worker reads them too.
  if (cluster.isPrimary) warnOfSettings(result, command.name, log);
  const readAgain = (): Settings => requireSettings(read());
  try {
    return await run({ settings, readAgain, environment, log, command, console: consoleLoader });
  } catch (error) {
    if (!(error instanceof StartFailure)) throw error;
    process.stderr.write(`portcullis: ${error.message}.\n`);
    return error.exitCode;
  } finally {
    await log.end();
  }
}
