import type { EffectiveSetting } from './setting-report.ts';
import type { SettingRow } from './setting-row.ts';
import { settingTable } from './setting-table.ts';
import type { Settings, SettingsResult } from './settings.ts';

const rows: readonly SettingRow[] = Object.values(settingTable);

/** Logs each variable that is probably a misspelt setting, each setting that only another command reads, and an audience that is a list. */
export function warnOfSettings(
  { misspellings, effective, settings }: Omit<Extract<SettingsResult, { kind: 'settings' }>, 'kind'>,
  command: 'serve' | 'gate',
  log: { write(level: 'warn', event: string, fields: Readonly<Record<string, string>>): void },
): void {
  for (const { name, likely } of misspellings) {
    log.write('warn', 'setting_unknown', { variable: name, fix: `It has no effect. Did you mean ${likely}?` });
  }
  const isWritten = ({ value, source }: EffectiveSetting): boolean => source !== 'default' && value !== '';
  for (const { name } of effective.filter(isWritten)) {
    const { command: other = 'both' } = rows.find(({ environment }) => environment === name) ?? {};
    if (other === 'both' || other === command) continue;
    const fix = `portcullis ${command} does not read it. Remove it, or run portcullis ${other}.`;
    log.write('warn', 'setting_unread', { setting: name, fix });
  }
  if (settings.audience.includes(',')) {
    const list = JSON.stringify(settings.audience.split(',').map((each) => each.trim()));
    const fix = `It is one audience, with its comma. For several, write "audience": ${list} of an issuer in the rules of a gate.`;
    log.write('warn', 'audience_has_comma', { setting: settings.variant.names.audience, fix });
  }
}

export function requireSettings(
  result: { readonly kind: 'settings'; readonly settings: Settings } | Extract<SettingsResult, { kind: 'problems' }>,
): Settings {
  if (result.kind === 'settings') return result.settings;
  throw new Error(result.problems.map(({ name, fix }) => `${name}: ${fix}`).join(' '));
}
