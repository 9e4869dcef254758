import { createGateCommand } from '../gate/gate-service.ts';
import { readGateSettings } from '../gate/gate-settings.ts';
import { RulesError } from '../gate/match/rules.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { fail, UsageError } from './commands/failure.ts';
import type { Flags } from './commands/flags.ts';
import { runService } from './run-service.ts';

export async function runGate({ rest: args }: Flags<'gate'>, environment: NodeJS.ProcessEnv): Promise<number> {
  const twice = ['--rules', '--upstream'].find((flag) => args.filter((arg) => arg.split('=')[0] === flag).length > 1);
  if (twice !== undefined) throw new UsageError(`${twice} is written twice. Write it once.`);
  try {
    return await runService(environment, () => readGateSettings({ args, environment }), createGateCommand);
  } catch (error) {
    if (!(error instanceof RulesError)) throw error;
    const separator = error.message.includes('\n') ? '\n' : ': ';
    throw fail(`the rules cannot be used${separator}${error.message}`, exitCodes.config);
  }
}
