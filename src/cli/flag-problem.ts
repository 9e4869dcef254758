import { findLikeliest } from '../likeliest-name.ts';
import { settingTable } from '../server/settings/setting-table.ts';
import { listFlags } from './commands/command-flags.ts';
import type { CommandRow } from './commands/command-table.ts';

/** Shorter flags are too similar to each other. */
const leastLetters = 4;

/**
 * Describes an error of `parseArgs`. Repeats only the name of a flag, because an argument may be a token.
 */
export function describeFlagError(error: unknown, known: Iterable<string>): string {
  const { code, message = '' } = error as { readonly code?: unknown; readonly message?: string }; // both are checked here
  const [, flag = ''] = /'(--?[\w-]+)/.exec(message) ?? [];
  if (code === 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL') return 'every argument is a flag, as in --name VALUE.';
  if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return describeUnknown(flag, known);
  // A value that begins with - is treated as the next flag.
  return /does not take an argument/.test(message) ? `${flag} takes no value.` : `${flag} lacks its value.`;
}

/** Describes the first flag that neither the command nor a setting has; `undefined` if all are known. */
export function findUnknownFlag(args: readonly string[], command: CommandRow): string | undefined {
  const flags = listFlags(command);
  // A setting of another command has no effect, or its own message.
  const settings = command.settings === 'none' ? [] : Object.values(settingTable).map(({ flag }) => flag);
  const known = new Set([...Object.keys(flags), ...settings]);
  for (const [index, arg] of args.entries()) {
    const [flag] = /^--?[A-Za-z][\w-]*/.exec(arg) ?? [];
    if (flag === undefined || arg === '-h') continue;
    const isValue = flags[args[index - 1]?.slice(2) ?? '']?.value !== undefined;
    if (flag.startsWith('--') ? !known.has(flag.slice(2)) : !isValue) return describeUnknown(flag, known);
  }
  return undefined;
}

function describeUnknown(flag: string, known: Iterable<string>): string {
  const meant = findLikeliest(flag.replace(/^-+/, ''), known, leastLetters);
  return `there is no flag ${flag}.${meant === undefined ? '' : ` Did you mean --${meant}?`}`;
}
