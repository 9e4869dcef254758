import type { Settings } from '../service/settings/settings.ts';

/** The issuer that the settings name: in full, or by its domain. `undefined` for a domain with `https://` in front. */
export function readSetIssuer({ issuer, domain }: Settings): string | undefined {
  if (issuer !== '') return issuer;
  return domain.kind === 'host' ? `https://${domain.text}/` : undefined;
}
