import type { Setting, SettingLabel, SettingLabels } from '../../explain/facts.ts';
import type { EffectiveSetting, Source } from './setting-report.ts';
import { type SettingName, type SettingRow, settingTable } from './setting-table.ts';
import { environmentName, type Settings } from './settings.ts';

const sources: Readonly<Record<Source, string>> = {
  flag: 'from a flag',
  environment: 'from the environment',
  file: 'from the settings file',
  default: 'the default',
};

const settings = {
  issuer: 'domain',
  audience: 'audience',
  dpopAccepted: 'dpopEnabled',
  trustProxy: 'trustProxy',
  algorithms: 'algorithms',
  externalUrl: 'externalUrl',
} as const satisfies Readonly<Partial<Record<keyof SettingLabels, SettingName>> & Record<Setting, SettingName>>;

/** How the service calls its settings, as they are spelled where they are set, and where each value comes from. */
export function labelSettings(
  { variant, spellings }: Pick<Settings, 'variant' | 'spellings'>,
  effective: readonly EffectiveSetting[],
): SettingLabels {
  const inForce = (setting: SettingName): InForce => {
    const row: SettingRow = settingTable[setting];
    const plain = environmentName(row, variant);
    const source = effective.find((each) => each.name === plain)?.source;
    const name = spellings[plain] ?? plain;
    // A flag wins over every variable.
    const line = (value: string): string => (source === 'flag' ? `--${row.flag}=${value}` : `${name}=${value}`);
    return { name, source, line };
  };
  const label = (setting: keyof typeof settings): SettingLabel => {
    const { name, source, line } = inForce(settings[setting]);
    return { name, source: source && sources[source], set: line };
  };
  return {
    issuer: labelIssuer(inForce('domain'), inForce('issuer')),
    audience: label('audience'),
    dpopAccepted: label('dpopAccepted'),
    trustProxy: label('trustProxy'),
    algorithms: label('algorithms'),
    externalUrl: label('externalUrl'),
  };
}

interface InForce {
  readonly name: string;
  readonly source: Source | undefined;
  line(value: string): string;
}

/** Two settings name the issuer, and only one of them may be set. */
function labelIssuer(domain: InForce, full: InForce): SettingLabel {
  if (full.source !== undefined && full.source !== 'default') {
    return { name: full.name, source: sources[full.source], set: full.line };
  }
  return {
    name: domain.name,
    source: domain.source && sources[domain.source],
    set(issuer) {
      // A domain stands for https://<domain>/, so only such an issuer can be set by it.
      const [, host] = /^https:\/\/([^/]+)\/$/.exec(issuer) ?? [];
      return host === undefined ? `${full.name}=${issuer}, and take out ${domain.name}` : domain.line(host);
    },
  };
}
