import { optionLabels, type SettingLabels } from '../../explain/facts.ts';
import { labelSettings } from '../../server/settings/setting-labels.ts';
import type { Settings } from '../../server/settings/settings.ts';

/** How the rules file calls what a fix is about. */
export function labelRules(file: string, settings: Pick<Settings, 'variant' | 'spellings'>): SettingLabels {
  const source = `in ${file}`;
  const member = (name: string, write: (value: string) => string = (value) => JSON.stringify(value)) => ({
    name: `"${name}"`,
    source,
    set: (value: string) => `"${name}": ${write(value)}`,
  });
  const { introspection: _, ...known } = optionLabels;
  const { externalUrl, trustProxy } = labelSettings(settings, []);
  return {
    ...known,
    scopeClaim: member('scopeClaim'),
    permissionsClaim: member('permissionsClaim'),
    subject: member('subject'),
    clientIds: member('clientIds', (value) => JSON.stringify([value])),
    issuer: member('issuer'),
    audience: member('audience'),
    dpopAccepted: member('dpop', () => '"allowed"'),
    algorithms: member('algorithms', (value) => JSON.stringify(value.split(','))),
    ...(externalUrl !== undefined && { externalUrl }),
    trustProxy,
  };
}
