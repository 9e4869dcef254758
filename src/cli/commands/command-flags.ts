import { readCommand, type SettingRow } from '../../server/settings/setting-row.ts';
import { settingTable } from '../../server/settings/setting-table.ts';
import type { CommandRow, FlagRow, FlagRows } from './command-table.ts';

/** Settings that a command accepts as flags, its own first. */
export function listSettings({ settings }: CommandRow): readonly SettingRow[] {
  if (settings === 'none') return [];
  const rows = Object.values<SettingRow>(settingTable);
  const accepted = settings === 'all' ? rows : rows.filter((row) => (readCommand(row) ?? settings) === settings);
  return accepted.toSorted((a, b) => Number(b.consumer === settings) - Number(a.consumer === settings));
}

/** Every flag of a command, by name. */
export function listFlags(command: CommandRow): Readonly<Record<string, FlagRow>> {
  const settings = listSettings(command).filter(({ secret }) => secret !== 'always');
  return {
    ...Object.fromEntries(settings.map(({ flag, meaning }) => [flag, { value: 'VALUE', meaning }])),
    ...(command.settings !== 'none' && { settings: { value: 'FILE', meaning: 'JSON file with settings.' } }),
    ...command.flags,
    help: { meaning: 'Prints this help.' },
  };
}

type ParseOption<Row> = Row extends { readonly value: string }
  ? Row extends { readonly isRepeated: true }
    ? { readonly type: 'string'; readonly multiple: true }
    : { readonly type: 'string' }
  : { readonly type: 'boolean' };

/** Options of `parseArgs` for the flags of a command. */
export function parseOptionsOf<Rows extends FlagRows>(
  rows: Rows,
): { readonly [Name in keyof Rows]: ParseOption<Rows[Name]> } {
  const options = Object.entries(rows).map(([name, { value, isRepeated }]) => [
    name,
    { type: value === undefined ? 'boolean' : 'string', ...(isRepeated && { multiple: true }) },
  ]);
  return Object.fromEntries(options); // the same names
}
