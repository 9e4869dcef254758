import type { TrustedIssuer } from '../../core/resource-server/issuers/trusted-issuer.ts';
import { readGateSettings } from '../../gate/gate-settings.ts';
import type { RuleExchange, RuleIntrospection, Rules } from '../../gate/match/rules.ts';
import { exitCodes } from '../../server/lifecycle/exit.ts';
import { type EffectiveSetting, formatProblems, type SettingProblem } from '../../server/settings/setting-report.ts';
import { type SettingName, settingTable } from '../../server/settings/setting-table.ts';
import { environmentName, readSettings, type Settings } from '../../server/settings/settings.ts';
import { variants } from '../../server/variants/variants.ts';
import { CommandFailure } from '../commands/failure.ts';
import { loadRules } from '../rules.ts';

type Environment = Readonly<NodeJS.ProcessEnv>;

/** A trusted issuer, with what the service uses for it. */
export interface Entry extends Pick<TrustedIssuer, 'issuer' | 'jwksUri' | 'insecure'> {
  /** Name in the rules, if there are several entries. */
  readonly label: string | undefined;
  /** Accepted in access tokens. */
  readonly algorithms: readonly string[];
  /** Seconds by which `iat` may be in the future. */
  readonly tolerance: number;
  readonly introspection: RuleIntrospection | undefined;
  /** Exchanges of the rules, with their names. */
  readonly exchanges: readonly (readonly [string, RuleExchange])[];
  /** Names a member as the operator sets it; with a value, in the form to write. */
  write(member: 'issuer' | 'jwksUri' | 'algorithms', value?: string): string;
}

export type Deployment = ReturnType<typeof createDeployment>;

interface ReadSettings {
  readonly settings: Settings;
  readonly effective: readonly EffectiveSetting[];
}

/** `read` is `undefined` if only `--from-outside` and `--peer` are checked. */
function createDeployment(read: ReadSettings | undefined, environment: Environment) {
  const { settings, effective = [] } = read ?? {};
  const variant = settings?.variant ?? variants.a;
  const find = (setting: SettingName) => {
    const name = environmentName(settingTable[setting], variant);
    return effective.find((each) => each.name === name);
  };
  /** Returns the name that sets a setting: its flag or variable. */
  const nameOf = (setting: SettingName): string =>
    find(setting)?.source === 'flag'
      ? `--${settingTable[setting].flag}`
      : environmentName(settingTable[setting], variant);
  const isIssuerSet = (find('issuer')?.source ?? 'default') !== 'default';
  const endpoint = variant.endpoints.find(({ access }) => access !== 'open' && access.scopes === undefined);
  const entries: readonly Entry[] =
    settings?.issuer === undefined ? [] : [readEntry(settings, settings.issuer, { nameOf, isIssuerSet })];
  const upstreamPath = settings?.mcp ? new URL(settings.audience).pathname : '/';
  return {
    ...{ settings, entries, environment, nameOf },
    /** Reason that there are no entries. */
    absence: 'no provider is set',
    /** The domain, if it has a scheme: then there is no issuer. */
    domainWithScheme: settings !== undefined && settings.issuer === undefined ? find('domain')?.value : undefined,
    rulesFile: undefined as string | undefined, // of a gate
    /** Path that requires a token and no scope. */
    protectedPath: settings?.upstream ? upstreamPath : (endpoint?.path ?? '/'),
    /** False if the path is only likely to. */
    isPathKnown: settings?.upstream === '',
    /** Certificate of the provider of `dev`, in PEM, and the URL of its clients. */
    ca: undefined as string | undefined, // of dev
    outside: undefined as URL | undefined, // of dev
  };
}

function readEntry(
  { algorithms, clockTolerance, jwksUri }: Settings,
  issuer: string,
  { nameOf, isIssuerSet }: { nameOf(setting: SettingName): string; readonly isIssuerSet: boolean },
): Entry {
  return {
    ...{ issuer, algorithms, tolerance: clockTolerance.nbf, label: undefined, introspection: undefined, exchanges: [] },
    ...(jwksUri !== undefined && { jwksUri }),
    write(member, value) {
      if (member !== 'issuer') return value === undefined ? nameOf(member) : `${nameOf(member)}=${value}`;
      if (isIssuerSet) return value === undefined ? nameOf('issuer') : `${nameOf('issuer')}=${value}`;
      if (value === undefined) return nameOf('domain');
      const [, host] = /^https:\/\/([\w.:-]+)\/$/.exec(value) ?? [];
      return host === undefined ? `ISSUER=${value} instead of ${nameOf('domain')}` : `${nameOf('domain')}=${host}`;
    },
  };
}

/** Reports whether no setting is set at all. */
export function areAbsent(problems: readonly SettingProblem[]): boolean {
  return problems.every(({ value, fix }) => value === undefined && fix.startsWith('It is required.'));
}

/**
 * Reads the settings. Without settings, finds a running `portcullis dev`, unless the flags name something else
 * (`hasOtherTarget`). Throws a failure that describes invalid settings.
 */
export async function readDeployment(
  args: readonly string[],
  environment: Environment,
  hasOtherTarget: boolean,
): Promise<Deployment> {
  const read = await readConfigured(args, environment);
  if (!Array.isArray(read)) return read as Deployment; // not the problems
  if (areAbsent(read)) {
    if (hasOtherTarget) return createDeployment(undefined, environment);
    const local = args.length === 0 ? await readLocal(environment) : undefined;
    if (local !== undefined) return local;
  }
  const advice = 'To check a running service without its settings: portcullis doctor --from-outside URL\n';
  throw new CommandFailure(`${formatProblems(read)}${advice}`, exitCodes.config);
}

async function readLocal(environment: Environment): Promise<Deployment | undefined> {
  // Loaded only without settings.
  const { findLocalService, describeLocalService } = await import('../../dev/local-service.ts');
  const local = await findLocalService(environment, '');
  if (local === undefined) return undefined;
  const { ca, issuer, audience, service, admin } = local;
  process.stderr.write(describeLocalService(local, 'checking'));
  const { port = '' } = admin === undefined ? {} : new URL(admin);
  const variables = {
    ISSUER: issuer,
    IDP_AUDIENCE: audience,
    ...local.environment,
    ...(port !== '' && { ADMIN_PORT: port }),
  };
  const { ISSUER: _, ...withDomain } = variables;
  const read = await readConfigured([], service === undefined ? variables : withDomain);
  if (Array.isArray(read)) return undefined;
  return { ...(read as Deployment), ca, outside: service === undefined ? undefined : new URL(service) }; // not the problems
}

async function readConfigured(
  args: readonly string[],
  environment: Environment,
): Promise<Deployment | readonly SettingProblem[]> {
  const gate = readGateSettings({ args, environment });
  if (gate.kind === 'settings' && gate.rules.kind === 'file') {
    return readGate(createDeployment(gate, environment), gate.settings, gate.rules.path);
  }
  const result = readSettings({ args, environment });
  return result.kind === 'problems' ? result.problems : createDeployment(result, environment);
}

/** One entry for each issuer of the rules. */
async function readGate(deployment: Deployment, settings: Settings, path: string): Promise<Deployment> {
  const loaded = await loadRules(path, exitCodes.config).catch(() => undefined);
  const issuers = [...(loaded?.rules.issuers ?? [])];
  return {
    ...deployment,
    entries: issuers.map(([name, { issuer, jwksUri, insecure, rules = {} }]): Entry => {
      const { algorithms = settings.algorithms, clockTolerance = settings.clockTolerance } = rules;
      return {
        ...{ issuer, algorithms, label: issuers.length > 1 ? name : undefined },
        ...(jwksUri !== undefined && { jwksUri }),
        ...(insecure !== undefined && { insecure }),
        tolerance: typeof clockTolerance === 'number' ? clockTolerance : clockTolerance.nbf,
        introspection: loaded?.rules.introspections.get(name),
        exchanges: [...(loaded?.rules.exchanges ?? [])].filter(([, exchange]) => exchange.issuer === name),
        write: (member, value) => {
          const written = member === 'algorithms' ? `["${value}"]` : `"${value}"`;
          return `"${member}"${value === undefined ? '' : `: ${written}`} of "${name}" in ${path}`;
        },
      };
    }),
    absence: loaded === undefined ? 'the rules are not valid: see rules' : 'the rules have no issuers',
    domainWithScheme: undefined,
    rulesFile: path,
    protectedPath: findProtectedPath(loaded?.rules),
    isPathKnown: false,
  };
}

/** A path of the first rule that requires a token on every host. */
function findProtectedPath(rules: Rules | undefined): string {
  const rule = rules?.rules.find(
    ({ access, mode, hosts, methods, mcp }) =>
      access === 'token' &&
      mode === 'enforce' &&
      hosts.length === 0 &&
      mcp === undefined &&
      (methods.length === 0 || methods.includes('GET')),
  );
  return (rule?.path ?? '/').replace(/\*+|\{\w+\}/g, 'x');
}
