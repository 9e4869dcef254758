import { readGateSettings } from '../../gate/gate-settings.ts';
import { exitCodes } from '../../server/lifecycle/exit.ts';
import { type EffectiveSetting, formatProblems, type SettingProblem } from '../../server/settings/setting-report.ts';
import { type SettingName, settingTable } from '../../server/settings/setting-table.ts';
import { environmentName, readSettings, type Settings } from '../../server/settings/settings.ts';
import { variants } from '../../server/variants/variants.ts';
import { CommandFailure } from '../commands/failure.ts';
import { loadRules } from '../rules.ts';

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
    nameOf: (setting) => environmentName(settingTable[setting], variant),
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

/** Reports whether no setting is set at all. */
export function areAbsent(problems: readonly SettingProblem[]): boolean {
  return problems.every(({ value, fix }) => value === undefined && fix.startsWith('It is required.'));
}

/**
 * Reads the settings. Without settings, finds a running `portcullis dev`, unless the flags name something else
 * (`hasOtherTarget`). Throws a failure that describes invalid settings.
 */
export async function readDeployments(
  args: readonly string[],
  environment: Environment,
  hasOtherTarget: boolean,
): Promise<FoundDeployments> {
  const { deployments, problems } = await readConfigured(args, environment);
  if (deployments !== undefined) return { deployments, admin: findAdmin(deployments[0].settings), note: '' };
  if (areAbsent(problems)) {
    if (hasOtherTarget) return { deployments: [createDeployment(undefined, environment)], admin: undefined, note: '' };
    const local = args.length === 0 ? await readLocal(environment) : undefined;
    if (local !== undefined) return local;
  }
  const advice = 'To check a running service without its settings: portcullis doctor --from-outside URL\n';
  throw new CommandFailure(`${formatProblems(problems)}${advice}`, exitCodes.config);
}

/** URL of the admin listener on this host; `undefined` if it is off, or its port is unknown. */
export function findAdmin(settings: Settings | undefined): string | undefined {
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
  const { port = '' } = admin === undefined ? {} : new URL(admin);
  const { deployments = [createDeployment(undefined, local.environment)] } = await readConfigured([], {
    ...local.environment,
    ...(port !== '' && { ADMIN_PORT: port }),
  });
  const [first, ...others] = deployments.map((each) => ({ ...each, issuer: each.issuer ?? issuer, ca }));
  return {
    deployments: [first, ...others] as Deployments, // as many as before
    outside: service === undefined ? undefined : new URL(service),
    admin,
    note: describeLocalService(local, 'checking'),
  };
}

interface Configured {
  /** `undefined` if there are problems. */
  readonly deployments?: Deployments;
  readonly problems: readonly SettingProblem[];
}

async function readConfigured(args: readonly string[], environment: Environment): Promise<Configured> {
  const gate = readGateSettings({ args, environment });
  if (gate.kind === 'settings' && gate.rules.kind === 'file') {
    return { deployments: await readGate(createDeployment(gate, environment), gate.rules.path), problems: [] };
  }
  const result = readSettings({ args, environment });
  if (result.kind === 'problems') return result;
  return { deployments: [createDeployment(result, environment)], problems: [] };
}

/** One deployment for each issuer of the rules. */
async function readGate(deployment: Deployment, path: string): Promise<Deployments> {
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
  return [withRules(first), ...others.map(withRules)];
}

/** Issuers that publish discovery; `undefined` if the rules are not valid. */
async function readIssuers(path: string): Promise<readonly string[] | undefined> {
  const loaded = await loadRules(path, exitCodes.config).catch(() => undefined);
  const discovered = [...(loaded?.rules.issuers.values() ?? [])].filter(
    ({ jwksUri, insecure }) => jwksUri === undefined && insecure !== true,
  );
  return loaded && [...new Set(discovered.map(({ issuer }) => issuer))];
}
