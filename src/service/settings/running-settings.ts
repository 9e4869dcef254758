import type { Misspelling } from './environment.ts';
import type { Settings, SettingsResult } from './settings.ts';

/** What a warning is written to. */
interface SettingLog {
  write(level: 'warn', event: string, fields: Readonly<Record<string, string>>): void;
}

/** One line in the log for each variable that is probably a misspelt setting. */
export function warnOfMisspellings(misspellings: readonly Misspelling[], log: SettingLog): void {
  for (const { name, likely } of misspellings) {
    log.write('warn', 'setting_unknown', { variable: name, fix: `It has no effect. ${likely} is probably meant.` });
  }
}

/** The settings, when they are read once more. Throws an `Error` that names everything that is wrong. */
export function demandSettings(
  result: { readonly kind: 'settings'; readonly settings: Settings } | Extract<SettingsResult, { kind: 'problems' }>,
): Settings {
  if (result.kind === 'settings') return result.settings;
  throw new Error(result.problems.map(({ name, fix }) => `${name}: ${fix}`).join(' '));
}
