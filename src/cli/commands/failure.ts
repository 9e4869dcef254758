import { exitCodes } from '../../server/lifecycle/exit.ts';
import { formatProblems } from '../../server/settings/setting-report.ts';
import type { SettingsResult } from '../../server/settings/settings.ts';

/** Ends a command. The message is the complete text for standard error. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Creates a failure of one sentence or more. */
export function fail(message: string, exitCode: number): CommandFailure {
  return new CommandFailure(`portcullis: ${message}\n`, exitCode);
}

/** Invalid arguments. The message is one sentence; a reference to the help follows it. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Returns valid settings. Throws a failure that lists the problems of others. */
export function requireValid<Read extends { readonly kind: 'settings' }>(
  result: Read | Extract<SettingsResult, { kind: 'problems' }>,
): Read {
  if (result.kind === 'problems') throw new CommandFailure(formatProblems(result.problems), exitCodes.config);
  return result;
}
