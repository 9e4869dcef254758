import { exitCodes } from '../server/lifecycle/exit.ts';
import { formatProblems } from '../server/settings/setting-report.ts';
import { readSettings } from '../server/settings/settings.ts';

export async function runConfig(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const result = readSettings({ args, environment });
  if (result.kind === 'problems') {
    process.stderr.write(formatProblems(result.problems));
    return exitCodes.config;
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
