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

/**
 * Creates the function that describes a setting: its spelling, the source of its value, and the line that changes it. Without
 * an issuer in the settings, the label of `issuer` is the label of the domain.
 */
export function createLabelSetting({ variant }: Pick<Settings, 'variant'>, effective: readonly EffectiveSetting[]) {
  const label = (setting: SettingName) => {
    const row: SettingRow = settingTable[setting];
    const name = environmentName(row, variant);
    const found = effective.find((each) => each.name === name);
    // A flag takes precedence over every variable.
    const written = found?.source === 'flag' ? `--${row.flag}` : name;
    const set = (value: string): string => `${written}=${value}`;
    return { name, written, value: found?.value, source: found && sources[found.source], set };
  };
  const [domain, issuer] = [label('domain'), label('issuer')];
  const isWritten = issuer.source !== undefined && issuer.source !== sources.default;
  const place = isWritten ? issuer : { ...domain, set: (url: string) => setIssuer(url, domain, issuer) };
  return (setting: SettingName) => (setting === 'issuer' ? place : label(setting));
}

/** Describes the settings for `explain`. */
export function labelSettings(
  settings: Pick<Settings, 'variant'>,
  effective: readonly EffectiveSetting[],
): SettingLabels {
  const label = createLabelSetting(settings, effective);
  return {
    issuer: label('issuer'),
    audience: label('audience'),
    dpopAccepted: label('dpopEnabled'),
    trustProxy: label('trustProxy'),
    algorithms: label('algorithms'),
    externalUrl: label('externalUrl'),
    subject: label('subject'),
    clientCertificate: label('tlsClientCa'),
    cors: label('corsOrigins'),
  };
}

/** The domain gives the issuer `https://<domain>/`, and only one of the two settings may be set. */
function setIssuer(url: string, domain: SettingLabel, issuer: SettingLabel): string {
  const [, host] = /^https:\/\/([^/]+)\/$/.exec(url) ?? [];
  return host === undefined ? `${issuer.name}=${url}, and remove ${domain.name}` : domain.set(host);
}
