import { omitUndefined } from '../../core/option-members.ts';
import { createLabel, optionLabels, type SettingLabel, type SettingLabels } from '../../explain/facts.ts';
import { labelSettings } from '../../server/settings/setting-names.ts';
import type { Settings } from '../../server/settings/settings.ts';
import { variants } from '../../server/variants/variants.ts';

/** Labels for `--issuer` and `--audience`. */
export const flagLabels: SettingLabels = {
  ...optionLabels,
  issuer: createLabel('--issuer', (value) => `--issuer ${value}`),
  audience: createLabel('--audience', (value) => `--audience ${value}`),
};

/** Labels for `--server`: the variables of the service that runs there. */
export const serverLabels: SettingLabels = {
  ...labelSettings({ variant: variants.a }, []),
  issuer: createLabel('the issuer of that service', (value) => `Set ISSUER=${value} for that service`),
  audience: createLabel('the audience of that service', (value) => `Set IDP_AUDIENCE=${value} for that service`),
};

export function labelRules(file: string, settings: Pick<Settings, 'variant'>): SettingLabels {
  const member = (name: string, write: (value: string) => string = (value) => JSON.stringify(value)): SettingLabel =>
    createLabel(`"${name}"`, (value) => `"${name}": ${write(value)}`, `in ${file}`);
  const { externalUrl, trustProxy, clientCertificate } = labelSettings(settings, []);
  return {
    ...omitUndefined({ externalUrl, trustProxy, clientCertificate }),
    scopeClaim: member('scopeClaim'),
    permissionsClaim: member('permissionsClaim'),
    subject: member('subject'),
    clientIds: member('clientIds', (value) => JSON.stringify([value])),
    issuer: member('issuer'),
    audience: member('audience'),
    dpopAccepted: member('dpop', () => '"allowed"'),
    algorithms: member('algorithms', (value) => JSON.stringify(value.split(','))),
    cors: member('cors', (value) => `{ "origins": [${JSON.stringify(value)}] }`),
  };
}

/** `dev` has a flag for the audience, and reads every other setting from its environment. */
export function labelDev(labels: SettingLabels): SettingLabels {
  const source = 'from portcullis dev';
  const variables = Object.entries(labels).map(([name, label]: readonly [string, SettingLabel]) => [
    name,
    createLabel(label.name, (value) => `${label.set(value)} portcullis dev`, label.source),
  ]);
  return {
    ...(Object.fromEntries(variables) as SettingLabels), // the same names
    audience: createLabel('audience', (value) => `portcullis dev --audience ${value}`, source),
    issuer: createLabel('issuer', () => 'get the token from the local provider: portcullis token', source),
  };
}
