import { LocalIdpFailure } from '../../dev/provider/failure.ts';
import { exitCodes, StartFailure } from '../../server/lifecycle/exit.ts';
import { type CommandName, commandTable } from './command-table.ts';
import { CommandFailure, UsageError } from './failure.ts';
import { type Flags, findUnknownFlag, readFlags } from './flags.ts';
import { formatCommandHelp } from './help.ts';

type Run<Name extends CommandName> = (flags: Flags<Name>, environment: NodeJS.ProcessEnv) => Promise<number>;

/** Commands are loaded on demand, so that each starts fast. */
const commands: { readonly [Name in CommandName]: () => Promise<Run<Name>> } = {
  serve: async () => (await import('../serve.ts')).runServe,
  dev: async () => (await import('../dev.ts')).runDev,
  token: async () => (await import('../token.ts')).runToken,
  explain: async () => (await import('../explain.ts')).runExplain,
  watch: async () => (await import('../watch.ts')).runWatch,
  doctor: async () => (await import('../doctor.ts')).runDoctor,
  gate: async () => (await import('../gate.ts')).runGate,
  rules: async () => (await import('../rules.ts')).runRules,
  revoke: async () => (await import('../revoke.ts')).runRevoke,
  config: async () => (await import('../config.ts')).runConfig,
};

/** Runs a command with its arguments, or prints its help. Returns the exit status. */
export async function runCommand<Name extends CommandName>(
  name: Name,
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<number> {
  try {
    const unknown = findUnknownFlag(args, commandTable[name]);
    if (unknown !== undefined) throw new UsageError(unknown);
    if (args.includes('--help') || args.includes('-h')) {
      process.stdout.write(formatCommandHelp(name));
      return exitCodes.ok;
    }
    const run = await commands[name]();
    return await run(readFlags(name, args), environment);
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`portcullis: ${error.message}\nFlags and examples: portcullis ${name} --help\n`);
      return exitCodes.usage;
    }
    const isStart = error instanceof StartFailure || error instanceof LocalIdpFailure;
    if (!isStart && !(error instanceof CommandFailure)) throw error;
    process.stderr.write(isStart ? `portcullis: ${error.message}.\n` : error.message);
    return error.exitCode;
  }
}
