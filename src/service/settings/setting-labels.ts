import type { Setting, SettingLabel, SettingLabels } from '../../explain/facts.ts';
import type { Variant } from '../variants/variants.ts';
import type { EffectiveSetting, Source } from './setting-report.ts';
import { type SettingName, settingTable } from './setting-table.ts';
import { environmentName } from './settings.ts';

const sources: Readonly<Record<Source, string>> = {
  flag: 'from a flag',
  environment: 'from the environment',
  file: 'from the settings file',
  default: 'the default',
};

const settings: Readonly<Record<Setting, SettingName>> = {
  issuer: 'domain',
  audience: 'audience',
  dpopAccepted: 'dpopEnabled',
  trustProxy: 'trustProxy',
  algorithms: 'algorithms',
};

/** How the service calls its settings, and where each value comes from. */
export function labelSettings(variant: Variant, effective: readonly EffectiveSetting[]): SettingLabels {
  const label = (setting: Setting): SettingLabel => {
    const name = environmentName(settingTable[settings[setting]], variant);
    const source = effective.find((each) => each.name === name)?.source;
    return {
      name,
      source: source && sources[source],
      set: (value) => (setting === 'issuer' ? setIssuer(name, value) : `${name}=${value}`),
    };
  };
  return {
    issuer: label('issuer'),
    audience: label('audience'),
    dpopAccepted: label('dpopAccepted'),
    trustProxy: label('trustProxy'),
    algorithms: label('algorithms'),
  };
}

/** A domain stands for https://<domain>/, so only such an issuer can be set by it. */
function setIssuer(name: string, issuer: string): string {
  const [, host] = /^https:\/\/([^/]+)\/$/.exec(issuer) ?? [];
  return host === undefined ? `ISSUER=${issuer}, and take out ${name}` : `${name}=${host}`;
}
