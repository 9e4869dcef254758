import { isTime } from '../../core/jose/json.ts';
import { findLikeliest } from '../../core/likeliest-name.ts';
import { findRemoved } from '../../server/settings/removed-settings.ts';
import type { SettingRow } from '../../server/settings/setting-row.ts';
import { settingTable } from '../../server/settings/setting-table.ts';
import { type CommandName, type CommandRow, commandTable, type FlagRow } from './command-table.ts';
import { UsageError } from './failure.ts';

/** Settings that a command accepts as flags, its own first. */
export function listSettings({ settings }: CommandRow): readonly SettingRow[] {
  if (settings === undefined) return [];
  const rows = Object.values<SettingRow>(settingTable);
  const accepted = settings === 'all' ? rows : rows.filter(({ command }) => command === 'both' || command === settings);
  return accepted.toSorted((a, b) => Number(b.command === settings) - Number(a.command === settings));
}

/** Every flag of a command, by name. */
export function listFlags(command: CommandRow): Readonly<Record<string, FlagRow>> {
  const settings = listSettings(command).filter(({ secret }) => secret !== 'always');
  return {
    ...Object.fromEntries(settings.map(({ flag, meaning }) => [flag, { value: 'VALUE', meaning }])),
    ...(command.settings !== undefined && { settings: { value: 'FILE', meaning: 'JSON file with settings.' } }),
    ...command.flags,
    help: { meaning: 'Prints this help.' },
  };
}

/** Finds the row of a flag by its name or its other spelling. */
function findFlag(
  flags: Readonly<Record<string, FlagRow>>,
  flag: string,
): readonly [name: string, row: FlagRow] | undefined {
  return Object.entries(flags).find(([name, { alias }]) => name === flag || alias === flag);
}

/** ISO 8601: `Date.parse` also reads `yesterday 12` and `11.12.2026`, as a time that is not meant. */
const timeGrammar = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?$/i;

/** Reads a time, as seconds since the epoch. */
export function readTime(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const isNumber = /^\d+(?:\.\d+)?$/.test(text);
  const seconds = isNumber ? Number(text) : Date.parse(text) / 1000;
  if (isTime(seconds) && (isNumber || timeGrammar.test(text))) return seconds;
  throw new UsageError(`--${flag} takes a time as in 2026-11-22T10:41:00Z, or seconds since 1970.`);
}

/** Shorter flags are too similar to each other. */
const leastLetters = 4;

/** Describes the first flag that neither the command nor a setting has; `undefined` if all are known. */
export function findUnknownFlag(args: readonly string[], command: CommandRow): string | undefined {
  const flags = listFlags(command);
  // A setting of another command has no effect, or its own message.
  const settings = command.settings === undefined ? [] : Object.values(settingTable).map(({ flag }) => flag);
  const known = new Set([...Object.keys(flags), ...settings]);
  for (const [index, arg] of args.entries()) {
    const [flag] = /^--?[A-Za-z][\w-]*/.exec(arg) ?? [];
    if (flag === undefined || arg === '-h') continue;
    const isValue = findFlag(flags, args[index - 1]?.slice(2) ?? '')?.[1].value !== undefined;
    const isKnown = known.has(flag.slice(2)) || findFlag(flags, flag.slice(2)) !== undefined;
    if (flag.startsWith('--') ? isKnown : isValue) continue;
    // The settings report what replaces it.
    if (command.settings !== undefined && findRemoved(flag) !== undefined) continue;
    const meant = findLikeliest(flag.replace(/^-+/, ''), known, leastLetters);
    return `there is no flag ${flag}.${meant === undefined ? '' : ` Did you mean --${meant}?`}`;
  }
  return undefined;
}

type FlagValue<Row> = Row extends { readonly value: string }
  ? Row extends { readonly isRepeated: true }
    ? readonly string[]
    : string
  : true;

/** Flags of a command, and the other arguments: flags of settings, or words. */
export interface Flags<Name extends CommandName> {
  readonly values: {
    readonly [Flag in keyof (typeof commandTable)[Name]['flags']]?:
      | FlagValue<(typeof commandTable)[Name]['flags'][Flag]>
      | undefined;
  };
  readonly rest: readonly string[];
}

/** Reads the flags of a command. A message repeats only the name of a flag, because an argument may be a token. */
export function readFlags<Name extends CommandName>(name: Name, args: readonly string[]): Flags<Name> {
  const { flags, settings, forms = [] }: CommandRow = commandTable[name];
  const values: Record<string, string | string[] | true> = {};
  const rest: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? '';
    const [, typed = '', written] = /^--([^=]+)(?:=(.*))?$/s.exec(arg) ?? [];
    const [flag = typed, row] = findFlag(flags, typed) ?? [];
    if (row === undefined) {
      rest.push(arg);
    } else if (row.value === undefined) {
      if (written !== undefined) throw new UsageError(`--${flag} takes no value.`);
      values[flag] = true;
    } else {
      const value = written ?? args[++at];
      // A value that begins with - is treated as the next flag.
      if (value === undefined || (written === undefined && /^-./.test(value))) {
        throw new UsageError(`--${flag} lacks its value.`);
      }
      if (settings !== undefined && row.isRepeated === undefined && flag in values) {
        throw new UsageError(`--${flag} is duplicated.`);
      }
      values[flag] = row.isRepeated === undefined ? value : ([values[flag] ?? [], value].flat() as string[]);
    }
  }
  const takesWords = forms.some((form) => /^\w/.test(form));
  if (settings === undefined && Object.keys(flags).length > 0 && rest.length > 0 && !takesWords) {
    throw new UsageError('every argument is a flag, as in --name VALUE.');
  }
  return { values: values as Flags<Name>['values'], rest }; // each value has the form of its row
}
