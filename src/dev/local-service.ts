import { resolve } from 'node:path';
import type { EffectiveSetting } from '../server/settings/setting-report.ts';
import type { SettingRow } from '../server/settings/setting-row.ts';
import { settingTable } from '../server/settings/setting-table.ts';
import { environmentName } from '../server/settings/settings.ts';
import { variants } from '../server/variants/variants.ts';
import { type Environment, findCacheFolder } from './provider/cache-folder.ts';
import { findRunning } from './provider/running.ts';

/** Describes the replacement for missing settings. `activity`: its use, such as *checking*. */
export function describeLocalService({ issuer }: LocalService, activity: string): string {
  return `portcullis: no settings are set: ${activity} portcullis dev, which runs ${issuer}\n`;
}

export type LocalService = NonNullable<Awaited<ReturnType<typeof findLocalService>>>;

/**
 * Finds a running `portcullis dev`: the one with this issuer, otherwise the one that was started last. `undefined` if none
 * responds.
 */
export async function findLocalService(environment: Environment, issuer: string) {
  const provider = await findRunning(findCacheFolder(environment), undefined, issuer);
  if (provider?.audience === undefined) return undefined;
  const { issuer: found, audience, certificate: ca, variables, service, admin } = provider;
  // The provider is on this host: no proxy is needed.
  const outbound = { NO_PROXY: 'localhost', no_proxy: 'localhost' };
  return { issuer: found, audience, ca, environment: { ...environment, ...variables, ...outbound }, service, admin };
}

/** Settings that do not affect decisions. Other commands have no use for them. */
const excluded: ReadonlySet<string> = new Set(['CONSOLE', 'CONSOLE_KEY_FILE', 'ADMIN_PORT']);

/** Lists the variables of a service for other commands of this user, without secrets. */
export function listSharedVariables(effective: readonly EffectiveSetting[]): Readonly<Record<string, string>> {
  const rows = Object.values<SettingRow>(settingTable).filter(({ secret }) => secret === undefined);
  const open = rows.flatMap((row) => Object.values(variants).map((variant) => environmentName(row, variant)));
  const shared = effective.filter(
    ({ name, source }) => source !== 'default' && !excluded.has(name) && open.includes(name),
  );
  return Object.fromEntries(shared.map(({ name, value }) => [name, name === 'RULES' ? resolve(value) : value]));
}
