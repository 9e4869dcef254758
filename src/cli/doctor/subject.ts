import { type SettingName, settingTable } from '../../server/settings/setting-table.ts';
import { environmentName, type Settings } from '../../server/settings/settings.ts';
import { variants } from '../../server/variants/variants.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** What is examined, as far as the settings tell. Without settings only what is called from outside is looked at. */
export interface Subject {
  /** `undefined` if none is set, or it is written in a way that cannot work. */
  readonly issuer: string | undefined;
  /** The domain as it was written, with https:// in front. */
  readonly domainWithScheme: string | undefined;
  /** Seconds by which clocks may differ. */
  readonly clockTolerance: number;
  /** `memory`, `off`, or a URL that may hold a password; `undefined` without settings. */
  readonly replayStore: string | undefined;
  readonly corsOrigins: readonly string[];
  /** What clients are said to call; empty if it is not set. */
  readonly externalUrl: string;
  readonly admin: { readonly host: string; readonly port: number | 'off' } | undefined;
  /** Of a gate. */
  readonly rulesFile: string | undefined;
  /** A path that wants a token and no scope. */
  readonly protectedPath: string;
  /** Proxies, and what Node trusts. */
  readonly environment: Environment;
  /** PEM of a certificate that is trusted as well, for the provider. */
  readonly ca?: string;
  /** The variable of a setting. */
  nameOf(setting: SettingName): string;
}

/** The subject of these settings, if there are any; `domain` as it was written. */
export function readSubject(settings: Settings | undefined, environment: Environment, domain?: string): Subject {
  const variant = settings?.variant ?? variants.a;
  const issuer = settings?.issuer;
  const endpoint = variant.endpoints.find(({ access }) => access !== 'open' && access.scopes === undefined);
  return {
    issuer,
    domainWithScheme: settings !== undefined && issuer === undefined ? domain : undefined,
    clockTolerance: settings?.clockTolerance.nbf ?? 5,
    replayStore: settings?.replayStore,
    corsOrigins: settings?.corsOrigins ?? [],
    externalUrl: settings?.externalUrl ?? '',
    admin: settings && { host: settings.adminHost, port: settings.adminPort },
    rulesFile: undefined,
    protectedPath: endpoint?.path ?? '/',
    environment,
    nameOf: (setting) => environmentName(settingTable[setting], variant, settings?.spellings),
  };
}
