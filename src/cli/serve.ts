import { exitCodes, StartFailure } from '../service/exit.ts';
import { createLog } from '../service/log.ts';
import { run } from '../service/run.ts';
import { formatProblems } from '../service/setting-report.ts';
import { readSettings } from '../service/settings.ts';

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
