import type { TrustedIssuer } from '../../core/resource-server/issuers/trusted-issuer.ts';
import { type GateSettings, readGateSettings } from '../../gate/gate-settings.ts';
import type { RuleExchange, RuleIntrospection, Rules } from '../../gate/match/rules.ts';
import { exitCodes } from '../../server/lifecycle/exit.ts';
import { createLabelSetting } from '../../server/settings/setting-names.ts';
import { areAbsent, formatProblems, type SettingProblem } from '../../server/settings/setting-report.ts';
import type { SettingName } from '../../server/settings/setting-table.ts';
import { readSettings, type Settings } from '../../server/settings/settings.ts';
import { variants } from '../../server/variants/variants.ts';
import { CommandFailure } from '../commands/failure.ts';
import { loadRules } from '../rules.ts';

type Environment = Readonly<NodeJS.ProcessEnv>;

/** Names a setting as the operator sets it; with a value, in the form to write. */
type Write = (setting: SettingName, value?: string) => string;

/** A trusted issuer, with what the service uses for it. */
export interface Entry extends Pick<TrustedIssuer, 'issuer' | 'jwksUri' | 'insecure'> {
  /** Name in the rules, if there are several entries. */
  readonly label?: string | undefined;
  /** Accepted in access tokens. */
  readonly algorithms: readonly string[];
  /** Seconds by which `iat` may be in the future. */
  readonly tolerance: number;
  readonly introspection?: RuleIntrospection | undefined;
  /** Exchanges of the rules, with their names. */
  readonly exchanges: readonly (readonly [string, RuleExchange])[];
  /** Proxies and authorities of outbound requests. */
  readonly trust: { readonly environment: Environment; readonly ca?: string };
  readonly write: Write;
}

export type Deployment = ReturnType<typeof createDeployment>;

/** `read` is `undefined` if only `--from-outside` and `--peer` are checked. */
function createDeployment(read: Pick<GateSettings, 'settings' | 'effective'> | undefined, trust: Entry['trust']) {
  const { settings, effective = [] } = read ?? {};
  const { variant = variants.a, issuer, jwksUri, upstream, mcp = false, audience = '' } = settings ?? {};
  const label = createLabelSetting({ variant }, effective);
  const write: Write = (setting, value) => (value === undefined ? label(setting).written : label(setting).set(value));
  const { algorithms = [], clockTolerance: { nbf: tolerance } = { nbf: 0 } } = settings ?? {};
  const place = { issuer: issuer ?? '', ...(jwksUri !== undefined && { jwksUri }) };
  const entry: Entry = { ...place, algorithms, tolerance, exchanges: [], trust, write };
  const domainWithScheme = issuer === undefined ? label('domain').value : undefined;
  const endpoint = variant.endpoints.find(({ access }) => access !== 'open' && access.scopes === undefined);
  return {
    ...{ settings, write, domainWithScheme },
    entries: issuer === undefined ? [] : [entry],
    /** Reason that there are no entries. */
    absence: domainWithScheme === undefined ? 'no provider is set' : 'the domain has a scheme: see provider',
    rulesFile: undefined as string | undefined, // of a gate
    /** Path that requires a token and no scope. */
    protectedPath: upstream ? (mcp ? new URL(audience).pathname : '/') : (endpoint?.path ?? '/'),
    /** False if the path is only likely to. */
    isPathKnown: upstream === '',
    /** URL of the clients of `dev`. */
    outside: undefined as URL | undefined, // of dev
  };
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
  const read = await readConfigured(args, { environment });
  if ('entries' in read) return read;
  if (areAbsent(read.problems)) {
    if (hasOtherTarget) return createDeployment(undefined, { environment });
    const local = args.length === 0 ? await readLocal(environment) : undefined;
    if (local !== undefined) return local;
  }
  const advice = 'To check a running service without its settings: portcullis doctor --from-outside URL\n';
  throw new CommandFailure(`${formatProblems(read.problems)}${advice}`, exitCodes.config);
}

async function readLocal(environment: Environment): Promise<Deployment | undefined> {
  // Loaded only without settings.
  const { findLocalService, describeLocalService } = await import('../../dev/local-service.ts');
  const local = await findLocalService(environment, '');
  if (local === undefined) return undefined;
  const { ca, issuer: ISSUER, audience: IDP_AUDIENCE, service, admin } = local;
  process.stderr.write(describeLocalService(local, 'checking'));
  const variables = {
    ...{ IDP_AUDIENCE, ...local.environment },
    // A service has its own issuer, perhaps by its domain.
    ...(service === undefined && { ISSUER }),
    ...(admin !== undefined && { ADMIN_PORT: new URL(admin).port }),
  };
  const read = await readConfigured([], { environment: variables, ca });
  return 'entries' in read ? { ...read, outside: service === undefined ? undefined : new URL(service) } : undefined;
}

async function readConfigured(
  args: readonly string[],
  trust: Entry['trust'],
): Promise<Deployment | { readonly problems: readonly SettingProblem[] }> {
  const sources = { args, environment: trust.environment };
  const gate = readGateSettings(sources);
  if (gate.kind === 'settings' && gate.rules.kind === 'file') {
    return { ...createDeployment(gate, trust), ...(await readGate(gate.rules.path, gate.settings, trust)) };
  }
  const result = readSettings(sources);
  return result.kind === 'problems' ? result : createDeployment(result, trust);
}

/** Reads the rules: one entry for each issuer. */
async function readGate(path: string, settings: Settings, trust: Entry['trust']): Promise<Partial<Deployment>> {
  const loaded = await loadRules(path, exitCodes.config).catch(() => undefined);
  const { rules = [], issuers = new Map(), introspections, exchanges = [] } = loaded?.rules ?? {};
  const entries = [...issuers].map(([name, { rules: own, ...place }]): Entry => {
    const { algorithms = settings.algorithms, clockTolerance = settings.clockTolerance } = own ?? {};
    return {
      ...{ ...place, algorithms, trust, label: issuers.size > 1 ? name : undefined },
      tolerance: typeof clockTolerance === 'number' ? clockTolerance : clockTolerance.nbf,
      introspection: introspections?.get(name),
      exchanges: [...exchanges].filter(([, { issuer }]) => issuer === name),
      write(member, value) {
        const written = member === 'algorithms' ? `["${value}"]` : `"${value}"`;
        return `"${member}"${value === undefined ? '' : `: ${written}`} of "${name}" in ${path}`;
      },
    };
  });
  const absence = loaded === undefined ? 'the rules are not valid: see rules' : 'the rules have no issuers';
  const protectedPath = findProtectedPath(rules);
  return { entries, absence, protectedPath, isPathKnown: false, rulesFile: path, domainWithScheme: undefined };
}

/** A path of the first rule that requires a token on every host. */
function findProtectedPath(rules: Rules['rules']): string {
  const rule = rules.find(
    ({ access, mode, hosts, methods, mcp }) =>
      [access, mode, hosts.length, mcp].join() === 'token,enforce,0,' &&
      (methods.length === 0 || methods.includes('GET')),
  );
  return (rule?.path ?? '/').replace(/\*+|\{\w+\}/g, 'x');
}
