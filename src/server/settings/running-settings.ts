import type { EffectiveSetting } from './setting-report.ts';
import { type SettingRow, settingTable } from './setting-table.ts';
import type { Settings, SettingsResult } from './settings.ts';

/** A log for warnings. */
interface SettingLog {
  write(level: 'warn', event: string, fields: Readonly<Record<string, string>>): void;
}

const rows: readonly SettingRow[] = Object.values(settingTable);

/** Logs each variable that is probably a misspelt setting, and each setting that only another command reads. */
export function warnOfSettings(
  { misspellings, effective }: Pick<Extract<SettingsResult, { kind: 'settings' }>, 'misspellings' | 'effective'>,
  command: 'serve' | 'gate',
  log: SettingLog,
): void {
  for (const { name, likely } of misspellings) {
    log.write('warn', 'setting_unknown', { variable: name, fix: `It has no effect. ${likely} is probably meant.` });
  }
  const isWritten = ({ value, source }: EffectiveSetting): boolean => source !== 'default' && value !== '';
  for (const { name } of effective.filter(isWritten)) {
    const { readBy = command } = rows.find(({ environment }) => environment === name) ?? {};
    if (readBy === command) continue;
    const fix = `portcullis ${command} does not read it. Remove it, or run portcullis ${readBy}.`;
    log.write('warn', 'setting_unread', { setting: name, fix });
  }
}

/** The settings, when they are read once more. Throws an `Error` that names everything that is wrong. */
export function demandSettings(
  result: { readonly kind: 'settings'; readonly settings: Settings } | Extract<SettingsResult, { kind: 'problems' }>,
): Settings {
  if (result.kind === 'settings') return result.settings;
  throw new Error(result.problems.map(({ name, fix }) => `${name}: ${fix}`).join(' '));
}
