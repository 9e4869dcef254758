import type { SettingLabels } from '../../explain/facts.ts';
import type { LogLineInput } from '../../explain/input/input.ts';
import { labelSettings } from '../../server/settings/setting-labels.ts';
import { readSettings } from '../../server/settings/settings.ts';
import { variants } from '../../server/variants/variants.ts';
import type { SplitFlags } from '../split-flags.ts';
import { labelRules } from './rule-labels.ts';

/** How whoever runs the service of a log line calls its settings. The line of a gate with rules names its rule. */
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
