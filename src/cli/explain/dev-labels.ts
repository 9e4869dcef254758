import type { SettingLabels } from '../../explain/facts.ts';

/** How somebody who runs `dev` changes what it sets. */
export function labelDev(labels: SettingLabels): SettingLabels {
  const source = 'from portcullis dev';
  return {
    ...labels,
    audience: { name: 'audience', source, set: (value) => `portcullis dev --audience ${value}` },
    issuer: {
      name: 'issuer',
      source,
      set: () => 'let the client get its token from the local provider: portcullis token',
    },
  };
}
