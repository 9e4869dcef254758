import { describeSetting, type SettingRow } from '../../server/settings/setting-row.ts';
import { environmentName } from '../../server/settings/settings.ts';
import { variants } from '../../server/variants/variants.ts';
import { type CommandName, type CommandRow, commandTable } from './command-table.ts';
import { listFlags, listSettings } from './flags.ts';

/** Columns of a help text. */
const width = 80;

/** Help of all commands. */
export function formatHelp(): string {
  const rows = Object.entries(commandTable).map(([name, { summary }]) => [name, summary] as const);
  return `Portcullis, an OAuth 2.0 resource server.

Usage: portcullis <command> [flags]

Commands:
${formatRows(rows, 15)}

Flags, settings and examples of a command: portcullis <command> --help
All settings: portcullis help settings
`;
}

/** Flags of the settings in the help of a command that accepts them: the first five. */
const usual = ['rules', 'upstream', 'domain', 'issuer', 'audience', 'port', 'dpop-enabled'];

/** Help of all settings, each as flag and variable. */
export function formatSettingsHelp(): string {
  return `Settings, as flag and variable (variant b: ${variants.b.names.domain}, ${variants.b.names.audience}):
${formatSettings(listSettings(commandTable.config))}
`;
}

function formatSettings(settings: readonly SettingRow[]): string {
  const rows = settings.map((row) => {
    const variable = environmentName(row, variants.a);
    return [row.secret === 'always' ? variable : `--${row.flag}, ${variable}`, describeSetting(row)] as const;
  });
  return formatRows(rows, 6);
}

export function formatCommandHelp(name: CommandName): string {
  const command: CommandRow = commandTable[name];
  const settings = listSettings(command);
  const fitting = settings.filter(
    (row) => command.flags[row.flag] === undefined && (row.command === 'both' || row.command === name),
  );
  const common = usual.flatMap((flag) => fitting.find((row) => row.flag === flag) ?? []).slice(0, 5);
  const flags = Object.entries(listFlags(command)).filter(([flag]) => settings.every((row) => row.flag !== flag));
  const own = [...Object.entries(command.flags), ...flags.filter(([flag]) => command.flags[flag] === undefined)];
  const { forms = ['[flags]'] } = command;
  const usage = forms.map((form, index) => `${index === 0 ? 'Usage:' : '      '} portcullis ${name} ${form}`);
  const sections = [
    usage.join('\n'),
    `${wrap(command.summary, 0)}\n${wrap(command.reads, 0)}`,
    `Flags:\n${formatRows(
      own.map(([flag, { value, meaning }]) => [`--${flag}${value === undefined ? '' : ` ${value}`}`, meaning]),
      22,
    )}`,
    ...(common.length === 0
      ? []
      : [
          `Usual settings, as flag and variable:\n${formatSettings(common)}`,
          `All settings (${settings.length}) are flags too: portcullis help settings`,
        ]),
    `Examples:\n${command.examples.map((example) => `  ${example}`).join('\n')}`,
  ];
  return `${sections.join('\n\n')}\n`;
}

/** Two columns. A label that is too long for its column has its own line. */
function formatRows(rows: readonly (readonly [label: string, text: string])[], indent: number): string {
  return rows
    .map(([label, text]) => {
      const start = `  ${label}`;
      const wrapped = wrap(text, indent);
      return start.length + 2 > indent ? `${start}\n${wrapped}` : start.padEnd(indent) + wrapped.slice(indent);
    })
    .join('\n');
}

function wrap(text: string, indent: number): string {
  // A longer word has its own line.
  const line = new RegExp(`\\S.{0,${width - indent - 1}}(?!\\S)|\\S+`, 'g');
  const lines = text.replaceAll('`', '').match(line) ?? [];
  return lines.map((line) => ' '.repeat(indent) + line).join('\n');
}
