import { formatProblems, type SettingProblem } from '../../src/server/settings/setting-report.ts';
import { readSettings, type SettingsResult } from '../../src/server/settings/settings.ts';

type Sources = readonly [environment?: Readonly<Record<string, string | undefined>>, args?: readonly string[]];

export const required = { IDP_DOMAIN: 'tenant.example.test', IDP_AUDIENCE: 'https://api.example.test/' };

/** Reads settings, with the required ones unless they are overridden. */
function read(...[environment, args = []]: Sources): SettingsResult {
  return readSettings({ args, environment: { ...required, ...environment } });
}

/** Reads settings that must be valid. */
export function readValid(...sources: Sources) {
  const result = read(...sources);
  if (result.kind === 'problems') throw new Error(formatProblems(result.problems));
  return result;
}

/** Returns the problems of settings. */
export function readBad(...sources: Sources): readonly SettingProblem[] {
  const result = read(...sources);
  return result.kind === 'problems' ? result.problems : [];
}
