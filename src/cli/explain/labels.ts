import { optionLabels, type SettingLabel, type SettingLabels } from '../../explain/facts.ts';
import type { LogLineInput } from '../../explain/input/input.ts';
import { labelSettings } from '../../server/settings/setting-names.ts';
import { readSettings, type Settings } from '../../server/settings/settings.ts';
import { variants } from '../../server/variants/variants.ts';
import type { SplitFlags } from '../split-flags.ts';

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

/** Labels for the service of a log line. The line of a gate with rules names its rule. */
export function labelLogLine(
  { fields }: LogLineInput,
  { texts, rest }: SplitFlags,
  environment: NodeJS.ProcessEnv,
): SettingLabels {
  const read = readSettings({ args: rest, environment });
  const { settings, effective } =
    read.kind === 'settings' ? read : { settings: { variant: variants.a, spellings: {} }, effective: [] };
  const labels = labelSettings(settings, effective);
  return fields['rule'] === undefined ? labels : labelRules(texts.get('rules')?.[0] ?? 'the rules', settings);
}

/** `dev` reads every other setting from its environment. */
function variable(label: SettingLabel): SettingLabel {
  return { ...label, set: (value) => `${label.set(value)} portcullis dev` };
}

export function labelDev(labels: SettingLabels): SettingLabels {
  const source = 'from portcullis dev';
  return {
    ...labels,
    dpopAccepted: variable(labels.dpopAccepted),
    trustProxy: variable(labels.trustProxy),
    algorithms: variable(labels.algorithms),
    audience: { name: 'audience', source, set: (value) => `portcullis dev --audience ${value}` },
    issuer: {
      name: 'issuer',
      source,
      set: () => 'get the token from the local provider: portcullis token',
    },
  };
}
