import cluster from 'node:cluster';
import { consoleLoader } from '../console/server/console-loader.ts';
import { serveCommand } from '../serve/serve-command.ts';
import { exitCodes, StartFailure } from '../server/lifecycle/exit.ts';
import { run } from '../server/process/run.ts';
import { demandSettings, warnOfSettings } from '../server/settings/running-settings.ts';
import { formatProblems } from '../server/settings/setting-report.ts';
import { readSettings, type Settings } from '../server/settings/settings.ts';
import { openCommandLog } from './command-log.ts';

/** `portcullis serve`: runs the service until it is asked to stop. */
export async function runServe(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const ofGate = args.find((arg) => /^--(?:rules|scope)(?:=|$)/.test(arg));
  if (ofGate !== undefined) {
    // Nobody must believe that rules are in force here.
    const fix = 'Rules are for another command. Write portcullis gate, or leave it out.';
    process.stderr.write(formatProblems([{ name: ofGate.replace(/=.*/s, ''), value: undefined, fix }]));
    return exitCodes.config;
  }
  const result = readSettings({ args, environment });
  if (result.kind === 'problems') {
    process.stderr.write(formatProblems(result.problems));
    return exitCodes.config;
  }
  const log = openCommandLog(result.settings);
  // Each worker reads them too.
  if (cluster.isPrimary) warnOfSettings(result, 'serve', log);
  const readAgain = (): Settings => demandSettings(readSettings({ args, environment }));
  try {
    return await run({
      settings: result.settings,
      readAgain,
      environment,
      log,
      command: serveCommand,
      console: consoleLoader,
    });
  } catch (error) {
    if (!(error instanceof StartFailure)) throw error;
    process.stderr.write(`portcullis: ${error.message}.\n`);
    return error.exitCode;
  } finally {
    await log.end();
  }
}
