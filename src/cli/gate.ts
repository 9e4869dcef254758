import cluster from 'node:cluster';
import { consoleLoader } from '../console/server/console-loader.ts';
import { createGateCommand } from '../gate/gate-command.ts';
import { readGateSettings } from '../gate/gate-settings.ts';
import { RulesError } from '../gate/rules/rules-source.ts';
import { exitCodes, StartFailure } from '../server/lifecycle/exit.ts';
import { run } from '../server/process/run.ts';
import { demandSettings, warnOfSettings } from '../server/settings/running-settings.ts';
import { formatProblems } from '../server/settings/setting-report.ts';
import type { Settings } from '../server/settings/settings.ts';
import { openCommandLog } from './command-log.ts';

/** `portcullis gate`: judges requests for other servers, until it is asked to stop. */
export async function runGate(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const twice = ['--rules', '--upstream'].find((flag) => args.filter((arg) => arg.split('=')[0] === flag).length > 1);
  if (twice !== undefined) {
    process.stderr.write(`portcullis: ${twice} is written twice. Write it once.\n`);
    return exitCodes.usage;
  }
  const result = readGateSettings({ args, environment });
  if (result.kind === 'problems') {
    process.stderr.write(formatProblems(result.problems));
    return exitCodes.config;
  }
  const log = openCommandLog(result.settings);
  // Each worker reads them too.
  if (cluster.isPrimary) warnOfSettings(result, 'gate', log);
  try {
    const readAgain = (): Settings => demandSettings(readGateSettings({ args, environment }));
    const command = createGateCommand(result);
    return await run({ settings: result.settings, readAgain, environment, log, command, console: consoleLoader });
  } catch (error) {
    if (error instanceof RulesError) {
      const separator = error.message.includes('\n') ? '\n' : ': ';
      process.stderr.write(`portcullis: the rules cannot be used${separator}${error.message}\n`);
      return exitCodes.config;
    }
    if (!(error instanceof StartFailure)) throw error;
    process.stderr.write(`portcullis: ${error.message}.\n`);
    return error.exitCode;
  } finally {
    await log.end();
  }
}
