import { exitCodes } from '../server/lifecycle/exit.ts';
import { readSettings } from '../server/settings/settings.ts';
import { requireValid } from './commands/failure.ts';
import type { Flags } from './commands/flags.ts';

export async function runConfig({ values, rest }: Flags<'config'>, environment: NodeJS.ProcessEnv): Promise<number> {
  const { effective, misspellings } = requireValid(readSettings({ args: rest, environment }));
  if (values.json) {
    process.stdout.write(`${JSON.stringify({ version: 1, settings: effective })}\n`);
    return exitCodes.ok;
  }
  const widthOf = (column: 'name' | 'value'): number => Math.max(...effective.map((each) => each[column].length));
  const [names, shown] = [widthOf('name'), widthOf('value')];
  for (const { name, value, source } of effective) {
    process.stdout.write(`${name.padEnd(names)}  ${value.padEnd(shown)}  ${source}\n`);
  }
  for (const { name, likely } of misspellings) {
    process.stderr.write(`portcullis: ${name} has no effect. Did you mean ${likely}?\n`);
  }
  return exitCodes.ok;
}
