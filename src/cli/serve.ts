import { createLog } from '../service/observation/log.ts';
import { exitCodes, StartFailure } from '../service/process/exit.ts';
import { run } from '../service/process/run.ts';
import { formatProblems } from '../service/settings/setting-report.ts';
import { readSettings } from '../service/settings/settings.ts';

/** `portcullis serve`: runs the service until it is asked to stop. */
export async function runServe(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const result = readSettings({ args, environment });
  if (result.kind === 'problems') {
    process.stderr.write(formatProblems(result.problems));
    return exitCodes.config;
  }
  const log = createLog({ fd: process.stdout.fd, style: process.stdout.isTTY ? 'pretty' : 'json' });
  try {
    return await run({ settings: result.settings, environment, log });
  } catch (error) {
    if (!(error instanceof StartFailure)) throw error;
    process.stderr.write(`portcullis: ${error.message}.\n`);
    return error.exitCode;
  } finally {
    await log.end();
  }
}
