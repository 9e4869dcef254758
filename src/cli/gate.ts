import { createGateCommand } from '../gate/gate-command.ts';
import { readGateSettings } from '../gate/gate-settings.ts';
import { RulesError } from '../gate/rules/rules.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { refuseUsage } from './commands/help.ts';
import { runCommand } from './run-command.ts';

export async function runGate(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const twice = ['--rules', '--upstream'].find((flag) => args.filter((arg) => arg.split('=')[0] === flag).length > 1);
  if (twice !== undefined) return refuseUsage('gate', `${twice} is written twice. Write it once.`);
  try {
    return await runCommand(environment, () => readGateSettings({ args, environment }), createGateCommand);
  } catch (error) {
    if (!(error instanceof RulesError)) throw error;
    const separator = error.message.includes('\n') ? '\n' : ': ';
    process.stderr.write(`portcullis: the rules cannot be used${separator}${error.message}\n`);
    return exitCodes.config;
  }
}
