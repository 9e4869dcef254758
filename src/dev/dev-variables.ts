import { resolve } from 'node:path';
import type { EffectiveSetting } from '../server/settings/setting-report.ts';
import { type SettingRow, settingTable } from '../server/settings/setting-table.ts';
import { environmentName } from '../server/settings/settings.ts';
import { variants } from '../server/variants/variants.ts';

const files: ReadonlySet<string> = new Set(['RULES', 'DENY_LIST']);
/** What tells nothing about how calls are judged: the console needs a key file, which is no business of others. */
const untold: ReadonlySet<string> = new Set(['CONSOLE', 'CONSOLE_KEY_FILE', 'ADMIN_PORT']);

/** The variables that set a service, for other commands of this user. Secrets are left out. */
export function tellVariables(effective: readonly EffectiveSetting[]): Readonly<Record<string, string>> {
  const told = effective.filter(({ name, source }) => source !== 'default' && isTold(name));
  return Object.fromEntries(told.map(({ name, value }) => [name, files.has(name) ? resolve(value) : value]));
}

function isTold(name: string): boolean {
  return !untold.has(name) && rows.some((row) => row.secret === undefined && namesOf(row).includes(name));
}

const rows: readonly SettingRow[] = Object.values(settingTable);

function namesOf(row: SettingRow): readonly string[] {
  return Object.values(variants).map((variant) => environmentName(row, variant));
}
