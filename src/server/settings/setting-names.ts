import type { Concept, Failure, FailureContext } from '../../core/failures.ts';
import type { Setting, SettingLabel, SettingLabels } from '../../explain/facts.ts';
import type { EffectiveSetting, Source } from './setting-report.ts';
import type { SettingRow } from './setting-row.ts';
import { type SettingName, settingTable } from './setting-table.ts';
import { environmentName, type Settings } from './settings.ts';

const settings = {
  issuer: 'domain',
  audience: 'audience',
  dpopAccepted: 'dpopEnabled',
  dpopRequired: 'dpopRequired',
  nonceSecret: 'dpopNonceSecret',
  replayStore: 'replayStore',
  trustProxy: 'trustProxy',
  externalUrl: 'externalUrl',
  algorithms: 'algorithms',
  maxTokenLifetime: 'maxTokenLifetime',
} as const satisfies Readonly<Record<Concept | Setting, SettingName>>;

/** The variable for each concept of the core. */
export type SettingNames = Readonly<Record<keyof typeof settings, string>>;

export function nameSettings({ variant }: Pick<Settings, 'variant'>): SettingNames {
  const names = Object.entries(settings).map(([concept, name]) => [
    concept,
    environmentName(settingTable[name], variant),
  ]);
  return Object.fromEntries(names) as SettingNames; // one for each concept of the map above
}

/** Formats the fix of a refusal for the operator, with the variable that it is about. */
export function formatFix({ fix, concept }: Failure, names: SettingNames): string {
  return concept === undefined ? fix : `${fix} Setting: ${names[concept]}.`;
}

/** Replaces the concept that a hint begins with by the name of its variable. */
export function nameHint(context: FailureContext | undefined, names: SettingNames): FailureContext | undefined {
  const hint = context?.['hint'];
  if (typeof hint !== 'string') return context;
  const [concept = '', ...rest] = hint.split(' ');
  if (!Object.hasOwn(names, concept) || rest.length === 0) return context;
  return { ...context, hint: [names[concept as keyof SettingNames], ...rest].join(' ') }; // an own member, as just seen
}

const sources: Readonly<Record<Source, string>> = {
  flag: 'from a flag',
  environment: 'from the environment',
  file: 'from the settings file',
  default: 'the default',
};

/** Describes the settings for `explain`: the spelling of each, the source of its value, and the line that changes it. */
export function labelSettings(
  { variant }: Pick<Settings, 'variant'>,
  effective: readonly EffectiveSetting[],
): SettingLabels {
  const label = (setting: SettingName): SettingLabel & { readonly isWritten: boolean } => {
    const row: SettingRow = settingTable[setting];
    const name = environmentName(row, variant);
    const source = effective.find((each) => each.name === name)?.source;
    return {
      name,
      isWritten: source !== undefined && source !== 'default',
      source: source && sources[source],
      // A flag takes precedence over every variable.
      set: (value) => (source === 'flag' ? `--${row.flag}=${value}` : `${name}=${value}`),
    };
  };
  const [domain, issuer] = [label('domain'), label('issuer')];
  return {
    issuer: issuer.isWritten ? issuer : { ...domain, set: (url) => setIssuer(url, domain, issuer) },
    audience: label(settings.audience),
    dpopAccepted: label(settings.dpopAccepted),
    trustProxy: label(settings.trustProxy),
    algorithms: label(settings.algorithms),
    externalUrl: label(settings.externalUrl),
    subject: label('subject'),
    clientCertificate: label('tlsClientCa'),
  };
}

/** The domain gives the issuer `https://<domain>/`, and only one of the two settings may be set. */
function setIssuer(url: string, domain: SettingLabel, issuer: SettingLabel): string {
  const [, host] = /^https:\/\/([^/]+)\/$/.exec(url) ?? [];
  return host === undefined ? `${issuer.name}=${url}, and remove ${domain.name}` : domain.set(host);
}
