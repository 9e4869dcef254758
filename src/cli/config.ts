import { exitCodes } from '../server/lifecycle/exit.ts';
import { formatProblems } from '../server/settings/setting-report.ts';
import { readSettings } from '../server/settings/settings.ts';
import { commandTable } from './commands/command-table.ts';
import { refuseUsage } from './commands/help.ts';
import { splitFlags } from './split-flags.ts';

export async function runConfig(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const flags = splitFlags(args, commandTable.config.flags);
  if (flags === undefined) return refuseUsage('config', '--json takes no value.');
  const result = readSettings({ args: flags.rest, environment });
  if (result.kind === 'problems') {
    process.stderr.write(formatProblems(result.problems));
    return exitCodes.config;
  }
  if (flags.switches.has('json')) {
    process.stdout.write(`${JSON.stringify({ version: 1, settings: result.effective })}\n`);
    return exitCodes.ok;
  }
  const width = (texts: readonly string[]): number => Math.max(...texts.map((text) => text.length));
  const names = width(result.effective.map(({ name }) => name));
  const values = width(result.effective.map(({ value }) => value));
  for (const { name, value, source } of result.effective) {
    process.stdout.write(`${name.padEnd(names)}  ${value.padEnd(values)}  ${source}\n`);
  }
  for (const { name, likely } of result.misspellings) {
    process.stderr.write(`portcullis: ${name} has no effect. Did you mean ${likely}?\n`);
  }
  return exitCodes.ok;
}
