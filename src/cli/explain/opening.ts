import type { LocalService } from '../../dev/local-service.ts';
import { textOf } from '../../explain/facts.ts';
import { type CallInput, joinHeader } from '../../explain/input/input.ts';
import { readUnverified } from '../../explain/unverified.ts';
import { readGateSettings } from '../../gate/gate-settings.ts';
import { readIssuerName } from '../../resource-server/issuer-name.ts';
import { exitCodes, StartFailure } from '../../server/lifecycle/exit.ts';
import { formatProblems } from '../../server/settings/setting-report.ts';
import { readSettings, type Settings } from '../../server/settings/settings.ts';
import type { SplitFlags } from '../split-flags.ts';
import { labelDev } from './dev-labels.ts';
import { type KeyOptions, openNamed, openNothing, openSettings } from './explained-server.ts';
import { createServerExplainer, type Explainer } from './explainer.ts';
import { readServer } from './server-metadata.ts';

type Environment = NodeJS.ProcessEnv;

/** The command cannot be understood; its message is told with the usage. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** What the call is held against; a number is the exit status if that cannot be read. */
export async function openExplainer(
  flags: SplitFlags,
  environment: Environment,
  input: CallInput,
): Promise<Explainer | number> {
  const one = (name: string): string | undefined => flags.texts.get(name)?.[0];
  const audience = flags.texts.get('audience') ?? [];
  const keys: KeyOptions = {
    environment,
    jwksFile: one('jwks'),
    network: flags.switches.has('offline') ? 'offline' : 'online',
  };
  try {
    const server = one('server');
    const named =
      server === undefined ? { issuer: one('issuer'), audience } : await readServer(server, { environment, audience });
    if (named.issuer !== undefined) {
      if (named.audience.length === 0) throw new UsageError('--issuer needs --audience');
      return createServerExplainer(await openNamed(readIssuerName(named.issuer), named.audience, keys));
    }
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(describe(error));
  }
  return openFromSettings({ flags, environment, keys, input });
}

interface Sources {
  readonly flags: SplitFlags;
  readonly environment: Environment;
  readonly keys: KeyOptions;
  readonly input: CallInput;
  /** What runs here, if the settings are those of its service. */
  readonly local?: LocalService;
}

async function openFromSettings({ flags, environment, keys, input, local }: Sources): Promise<Explainer | number> {
  const one = (name: string): string | undefined => flags.texts.get(name)?.[0];
  const audience = flags.texts.get('audience') ?? [];
  const gate = readGate(flags, environment);
  if (typeof gate === 'number') return gate;
  if (gate !== undefined) {
    if ((one('url') ?? input.url) === undefined)
      throw new UsageError('rules are for URLs, and the text tells none: name --url, and --method if it is not GET');
    // Only who has rules waits for the gate to be loaded.
    const { openGate } = await import('./explained-gate.ts');
    const opened = await openGate(gate.path, gate.settings, keys).catch((error: unknown) => {
      throw new UsageError(describe(error));
    });
    if (typeof opened !== 'string') return opened;
    process.stderr.write(opened);
    return exitCodes.config;
  }
  const rest = audience.length === 0 ? flags.rest : [...flags.rest, '--audience', audience[0] ?? ''];
  const result = readSettings({ args: rest, environment });
  if (result.kind === 'settings') {
    const opened = await openSettings(result.settings, result.effective, keys).catch((error: unknown) => {
      if (error instanceof StartFailure) throw error;
      throw new UsageError(describe(error));
    });
    return createServerExplainer(local === undefined ? opened : { ...opened, labels: labelDev(opened.labels) });
  }
  const areAbsent = result.problems.every(({ value, fix }) => value === undefined && fix.startsWith('It is required.'));
  const found = areAbsent && local === undefined ? await openLocal({ flags, environment, keys, input }) : undefined;
  if (found !== undefined) return found;
  if (areAbsent && flags.rest.length === 0) {
    return createServerExplainer(openNothing(readToken(input)));
  }
  process.stderr.write(formatProblems(result.problems));
  return exitCodes.config;
}

/** Without settings the call is held against what `portcullis dev` runs; `undefined` if it runs nothing. */
async function openLocal({ environment, keys, ...sources }: Sources): Promise<Explainer | number | undefined> {
  // Only who has no settings waits for it.
  const { findLocalService, tellLocal } = await import('../../dev/local-service.ts');
  const issuer = textOf(readToken(sources.input).claims['iss']);
  const local = keys.network === 'offline' ? undefined : await findLocalService(environment, issuer);
  if (local === undefined) return undefined;
  process.stderr.write(tellLocal(local, 'held against'));
  const trusting = { ...keys, ca: local.ca, environment: local.environment };
  if (local.service !== undefined)
    return openFromSettings({ ...sources, environment: local.environment, keys: trusting, local });
  const opened = await openNamed(local.issuer, [local.audience], trusting);
  return createServerExplainer({ ...opened, labels: labelDev(opened.labels) });
}

/** The token of the call, which nobody has looked at yet. */
function readToken({ headers }: CallInput): ReturnType<typeof readUnverified> {
  return readUnverified((joinHeader(headers, 'authorization') ?? '').replace(/^\S+ +/, ''));
}

/** The settings of a gate and its rules file, if one is named; a number is the exit status if they cannot be used. */
function readGate(
  { texts, rest }: SplitFlags,
  environment: Environment,
): { readonly path: string; readonly settings: Settings } | number | undefined {
  const file = texts.get('rules')?.[0];
  const rivals = ['issuer', 'audience', 'server'].filter((name) => texts.has(name));
  if (file !== undefined && rivals.length > 0)
    throw new UsageError(`the rules say what --${rivals[0]} would say: leave out one of the two`);
  const result = readGateSettings({ args: file === undefined ? rest : [...rest, '--rules', file], environment });
  if (result.kind === 'settings')
    return result.rules.kind === 'file' ? { path: result.rules.path, settings: result.settings } : undefined;
  // Without rules these may be the settings of a service, which are read next.
  if (file === undefined) return undefined;
  process.stderr.write(formatProblems(result.problems));
  return exitCodes.config;
}

/** Only texts of this program: others may hold what was read. */
function describe(error: unknown): string {
  if (error instanceof TypeError && /^\w+: /.test(error.message)) return error.message;
  if (error instanceof Error && error.name === 'ProviderError') return error.message.replace(/\.$/, '');
  return 'the metadata of --server, or the file of --jwks, cannot be used';
}
