import { readGateSettings } from '../../gate/gate-settings.ts';
import { readRulesFiles } from '../../gate/rules/rules-files.ts';
import { type RulesFile, readRules } from '../../gate/rules/rules-reader.ts';
import { type EffectiveSetting, formatProblems } from '../../server/settings/setting-report.ts';
import { type SettingName, settingTable } from '../../server/settings/setting-table.ts';
import { environmentName, readSettings, type Settings } from '../../server/settings/settings.ts';
import { variants } from '../../server/variants/variants.ts';

type Environment = Readonly<NodeJS.ProcessEnv>;

export interface Deployment {
  /** `undefined` if only `--from-outside` and `--peer` are checked. */
  readonly settings: Settings | undefined;
  /** Empty without settings. */
  readonly effective: readonly EffectiveSetting[];
  /** `undefined` if `issuerAbsence` applies, or the domain has a scheme. */
  readonly issuer: string | undefined;
  readonly issuerAbsence: string;
  readonly domainWithScheme: string | undefined;
  readonly rulesFile: string | undefined;
  /** Path that requires a token and no scope. */
  readonly protectedPath: string;
  readonly environment: Environment;
  /** Additional trusted certificate for the provider, in PEM. */
  readonly ca?: string;
  nameOf(setting: SettingName): string;
}

export function createDeployment(
  read: { readonly settings: Settings; readonly effective: readonly EffectiveSetting[] } | undefined,
  environment: Environment,
): Deployment {
  const { settings, effective = [] } = read ?? {};
  const variant = settings?.variant ?? variants.a;
  const domain = effective.find(({ name }) => name === variant.names.domain)?.value;
  const issuer = settings?.issuer;
  const endpoint = variant.endpoints.find(({ access }) => access !== 'open' && access.scopes === undefined);
  return {
    settings,
    effective,
    issuer,
    issuerAbsence: 'no provider is set',
    domainWithScheme: settings !== undefined && issuer === undefined ? domain : undefined,
    rulesFile: undefined,
    protectedPath: endpoint?.path ?? '/',
    environment,
    nameOf: (setting) => environmentName(settingTable[setting], variant, settings?.spellings),
  };
}

type Deployments = readonly [Deployment, ...Deployment[]];

export interface FoundDeployments {
  readonly deployments: Deployments;
  /** URL of the clients, if the flags need not name it. */
  readonly outside?: URL | undefined;
  /** URL of the admin listener; `undefined` if it is off, or its port is unknown. */
  readonly admin: string | undefined;
  /** Note for standard error if no settings are set, otherwise empty. */
  readonly note: string;
}

/**
 * Reads the settings. Without settings, finds a running `portcullis dev`, unless the flags name something else
 * (`hasOtherTarget`). Returns a string that describes invalid settings.
 */
export async function readDeployments(
  args: readonly string[],
  environment: Environment,
  hasOtherTarget: boolean,
): Promise<FoundDeployments | string> {
  const result = await readConfigured(args, environment);
  if (result.kind === 'deployments') {
    const { deployments } = result;
    return { deployments, admin: findAdmin(deployments[0].settings), note: '' };
  }
  if (result.areAbsent && hasOtherTarget)
    return { deployments: [createDeployment(undefined, environment)], admin: undefined, note: '' };
  const local = result.areAbsent && args.length === 0 ? await readLocal(environment) : undefined;
  return local ?? result.text;
}

function findAdmin(settings: Settings | undefined): string | undefined {
  const { adminHost = '', adminPort = 0 } = settings ?? {};
  if (adminPort === 'off' || adminPort === 0) return undefined;
  const host = /^(?:0\.0\.0\.0|::)$/.test(adminHost) ? '127.0.0.1' : adminHost;
  return `http://${host.includes(':') ? `[${host}]` : host}:${adminPort}`;
}

async function readLocal(environment: Environment): Promise<FoundDeployments | undefined> {
  // Loaded only without settings.
  const { findLocalService, describeLocalService } = await import('../../dev/local-service.ts');
  const local = await findLocalService(environment, '');
  if (local === undefined) return undefined;
  const { ca, issuer, service, admin } = local;
  const result = await readConfigured([], local.environment);
  const [first, ...others] =
    result.kind === 'deployments' ? result.deployments : ([createDeployment(undefined, local.environment)] as const);
  const withIssuer = (deployment: Deployment): Deployment => ({
    ...deployment,
    issuer: deployment.issuer ?? issuer,
    ca,
  });
  return {
    deployments: [withIssuer(first), ...others.map(withIssuer)],
    outside: service === undefined ? undefined : new URL(service),
    admin,
    note: describeLocalService(local, 'checking'),
  };
}

type Configured =
  | { readonly kind: 'deployments'; readonly deployments: Deployments }
  /** `areAbsent`: no setting is set. `text` describes the problems. */
  | { readonly kind: 'problems'; readonly areAbsent: boolean; readonly text: string };

async function readConfigured(args: readonly string[], environment: Environment): Promise<Configured> {
  const gate = readGateSettings({ args, environment });
  if (gate.kind === 'settings' && gate.rules.kind === 'file') {
    const { path } = gate.rules;
    const deployment = createDeployment(gate, environment);
    const issuers = await readIssuers(path);
    const withRules = (issuer: string | undefined): Deployment => ({
      ...deployment,
      issuer,
      issuerAbsence:
        issuers === undefined ? 'the rules are not valid: see rules' : 'no issuer of the rules publishes discovery',
      domainWithScheme: undefined,
      rulesFile: path,
      protectedPath: '/',
      nameOf: (setting) => (setting === 'domain' ? `"issuer" in ${path}` : deployment.nameOf(setting)),
    });
    const [first, ...others] = issuers ?? [];
    return { kind: 'deployments', deployments: [withRules(first), ...others.map(withRules)] };
  }
  const result = readSettings({ args, environment });
  if (result.kind === 'settings') {
    return { kind: 'deployments', deployments: [createDeployment(result, environment)] };
  }
  const areAbsent = result.problems.every(({ value, fix }) => value === undefined && fix.startsWith('It is required.'));
  return { kind: 'problems', areAbsent, text: formatProblems(result.problems) };
}

async function readIssuers(path: string): Promise<readonly string[] | undefined> {
  let file: RulesFile;
  try {
    file = readRulesFiles(path);
  } catch {
    return undefined;
  }
  const result = await readRules(file);
  if (result.kind === 'problems') return undefined;
  const discovered = [...result.rules.issuers.values()].filter(
    ({ jwksUri, insecure }) => jwksUri === undefined && insecure !== true,
  );
  return [...new Set(discovered.map(({ issuer }) => issuer))];
}
