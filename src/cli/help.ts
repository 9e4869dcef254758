import { describeSetting, type SettingRow } from '../server/settings/setting-row.ts';
import { settingTable } from '../server/settings/setting-table.ts';
import { environmentName } from '../server/settings/settings.ts';
import { variants } from '../server/variants/variants.ts';

export function asksForHelp(args: readonly string[]): boolean {
  return args.includes('--help') || args.includes('-h');
}

export function help(commands: readonly (readonly [name: string, summary: string])[]): string {
  const settings = Object.values<SettingRow>(settingTable).map(
    (row) =>
      `  ${(row.secret === 'always' ? '' : `--${row.flag}`).padEnd(22)} ${environmentName(row, variants.a).padEnd(18)} ${describeSetting(row).replaceAll('`', '')}`,
  );
  return `Portcullis, an OAuth 2.0 resource server.

Usage: portcullis <command> [flags]

Commands:
${commands.map(([name, summary]) => `  ${name.padEnd(8)} ${summary}`).join('\n')}

Settings of serve and config: flag over environment variable over --settings FILE (JSON) over default.
  --settings             FILE               JSON file with the names of the variables as members.
${settings.join('\n')}

Variant b names two of them ${variants.b.names.domain} and ${variants.b.names.audience}.
`;
}
