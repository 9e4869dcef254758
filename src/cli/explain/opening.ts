import { showUrl } from '../../core/http/shown-url.ts';
import type { JsonObject } from '../../core/jose/json.ts';
import { createOutbound } from '../../core/outbound/outbound.ts';
import { ProviderError } from '../../core/outbound/provider-error.ts';
import { readIssuerName } from '../../core/resource-server/issuers/trusted-issuer.ts';
import type { LocalService } from '../../dev/local-service.ts';
import { readUnverified, textOf } from '../../explain/facts.ts';
import { type CallInput, joinHeader } from '../../explain/input/input.ts';
import { readGateSettings } from '../../gate/gate-settings.ts';
import { exitCodes, StartFailure } from '../../server/lifecycle/exit.ts';
import { labelSettings } from '../../server/settings/setting-names.ts';
import { areAbsent } from '../../server/settings/setting-report.ts';
import { readSettings } from '../../server/settings/settings.ts';
import { CommandFailure, fail, requireValid, UsageError } from '../commands/failure.ts';
import type { Flags } from '../commands/flags.ts';
import {
  type Explainer,
  type KeyOptions,
  leavePeerOpen,
  openKeys,
  openNamed,
  openNothing,
  openSettings,
} from './explainer.ts';
import { flagLabels, labelDev, serverLabels } from './labels.ts';

type Environment = NodeJS.ProcessEnv;

interface Sources {
  readonly flags: Flags<'explain'>;
  readonly environment: Environment;
  readonly keys: KeyOptions;
  readonly input: CallInput;
  /** The running `dev`, if its settings are used. */
  readonly local?: LocalService;
}

/** Opens the rules that the flags name, or else the settings. */
export async function openExplainer(flags: Flags<'explain'>, environment: Environment, input: CallInput) {
  const { server, issuer, audience = [], jwks: jwksFile, offline } = flags.values;
  const keys: KeyOptions = { environment, jwksFile, network: offline ? 'offline' : 'online' };
  try {
    if (server !== undefined) {
      const named = await readServer(server, environment);
      const audiences = audience.length > 0 ? audience : named.audience;
      if (audiences.length === 0) throw new UsageError('server: its metadata names no resource. Add --audience.');
      return await openNamed(readIssuerName(named.issuer), audiences, keys, serverLabels);
    }
    if (issuer !== undefined) return await openNamed(readIssuerName(issuer), audience, keys, flagLabels);
    return await openFromSettings({ flags, environment, keys, input });
  } catch (error) {
    const isSaid = [UsageError, CommandFailure, StartFailure].some((type) => error instanceof type);
    throw isSaid ? error : new UsageError(`${describe(error)}.`);
  }
}

const trust = (keys: KeyOptions, { ca, environment }: LocalService): KeyOptions => ({ ...keys, ca, environment });

async function openFromSettings({ flags, environment, keys, input, local }: Sources): Promise<Explainer> {
  const { values, rest } = flags;
  const gate = readGate(flags, environment);
  if (gate !== undefined) {
    if ((values.url ?? input.url) === undefined) {
      throw new UsageError('rules are for URLs, and the input has none: add --url, and --method if it is not GET.');
    }
    // Loaded only for rules.
    const { openGate } = await import('./explained-gate.ts');
    return openGate(gate, keys);
  }
  const [audience] = values.audience ?? [];
  const args = audience === undefined ? rest : [...rest, '--audience', audience];
  const result = readSettings({ args, environment });
  if (result.kind === 'problems' && areAbsent(result.problems)) {
    const found = local === undefined ? await openLocal({ flags, environment, keys, input }) : undefined;
    if (found !== undefined) return found;
    if (rest.length === 0) return openNothing(readToken(input));
  }
  const { settings, effective } = requireValid(result);
  const labels = labelSettings(settings, effective);
  const opened = await openSettings(settings, keys, local === undefined ? labels : labelDev(labels));
  return leavePeerOpen(opened, settings.trustProxy);
}

/** Without settings, opens the running `portcullis dev`; `undefined` if there is none, or its key did not sign the token. */
async function openLocal({ environment, keys, ...sources }: Sources): Promise<Explainer | undefined> {
  const { header, claims } = readToken(sources.input);
  if (keys.network === 'offline') return undefined;
  // Loaded only if it may be needed.
  const { describeLocalService, findLocalService } = await import('../../dev/local-service.ts');
  const local = await findLocalService(environment, textOf(claims['iss']));
  if (local === undefined) return undefined;
  if (!(await hasKey(local, trust(keys, local), textOf(header['kid'])))) {
    if (local.issuer === claims['iss']) {
      process.stderr.write(`portcullis: dev runs ${local.issuer}, and no key of it has the kid of the token\n`);
    }
    return undefined;
  }
  process.stderr.write(describeLocalService(local, 'compared with'));
  const trusting = trust(keys, local);
  return local.service === undefined
    ? openNamed(local.issuer, [local.audience], trusting, labelDev(flagLabels))
    : openFromSettings({ ...sources, environment: local.environment, keys: trusting, local });
}

async function hasKey({ issuer }: LocalService, keys: KeyOptions, kid: string): Promise<boolean> {
  const opened = await openKeys({ issuer }, { ...keys, jwksFile: undefined });
  opened.close();
  return opened.keys.has(kid);
}

function readToken({ headers }: CallInput): ReturnType<typeof readUnverified> {
  return readUnverified((joinHeader(headers, 'authorization') ?? '').replace(/^\S+ +/, ''));
}

/** Reads the settings of a gate and its rules file; `undefined` without rules. */
function readGate({ values, rest }: Flags<'explain'>, environment: Environment) {
  const { rules: file } = values;
  const result = readGateSettings({ args: file === undefined ? rest : [...rest, '--rules', file], environment });
  // Without rules these may be the settings of a service, which are read next.
  if (result.kind === 'problems' && file === undefined) return undefined;
  const { rules, settings, isTrustSet } = requireValid(result);
  return rules.kind === 'file' ? { path: rules.path, settings, isTrustSet } : undefined;
}

/** Only messages of this program: others may repeat the input. */
function describe(error: unknown): string {
  if (error instanceof TypeError && /^\w+: /.test(error.message)) return error.message;
  if (error instanceof Error && error.name === 'ProviderError') return error.message.replace(/\.$/, '');
  return 'the metadata of --server, or the file of --jwks, cannot be used';
}

const limits = { timeoutSeconds: 5, maxBytes: 64 * 1024 };

/** Reads issuer and audience of a running service from its metadata (RFC 9728). */
async function readServer(url: string, environment: Environment) {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new UsageError('server: write a URL, as in https://api.example.');
  }
  const address = new URL('/.well-known/oauth-protected-resource', url);
  const outbound = createOutbound({ environment, insecure: true });
  const { resource, authorization_servers: issuers } = await outbound
    .fetchJson(address.href, limits)
    .then(({ value }): JsonObject => value)
    .catch((error: unknown): JsonObject => {
      if (!(error instanceof ProviderError)) throw error;
      if (!/^(?:network|tls|timeout)$/.test(error.kind)) return {};
      const advice = 'Start the service, or correct --server.';
      throw fail(`no response from ${showUrl(url)}. ${advice}`, exitCodes.unavailable);
    })
    .finally(outbound.close);
  const [issuer] = Array.isArray(issuers) ? issuers : [];
  if (typeof issuer !== 'string') {
    throw new UsageError(
      'server: it publishes no metadata that names its issuer (RFC 9728). Use --issuer and --audience instead, or its settings.',
    );
  }
  return { issuer, audience: typeof resource === 'string' ? [resource] : [] };
}
