import { createReadStream } from 'node:fs';
import type { LocalService } from '../../dev/local-service.ts';
import { readUnverified, textOf } from '../../explain/facts.ts';
import { type CallInput, joinHeader } from '../../explain/input/input.ts';
import { readGateSettings } from '../../gate/gate-settings.ts';
import { showUrl } from '../../http/shown-url.ts';
import { isJsonObject } from '../../jose/json.ts';
import { readIssuerName } from '../../resource-server/trusted-issuer.ts';
import { exitCodes, StartFailure } from '../../server/lifecycle/exit.ts';
import { formatProblems } from '../../server/settings/setting-report.ts';
import { readSettings, type Settings } from '../../server/settings/settings.ts';
import { fetchDocument } from '../doctor/requests.ts';
import type { SplitFlags } from '../split-flags.ts';
import { type KeyOptions, openNamed, openNothing, openSettings } from './explained-server.ts';
import { createServerExplainer, type Explainer } from './explainer.ts';
import { labelDev } from './labels.ts';

type Environment = NodeJS.ProcessEnv;

/** Invalid arguments; the message is printed with the usage. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Opens the rules of the flags. Returns an exit status if they cannot be read. */
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
      const issuer = readIssuerName(named.issuer);
      const local = isLoopback(issuer) && keys.network === 'online' ? await findLocal(environment, issuer) : undefined;
      const trusting = local === undefined ? keys : { ...keys, ca: local.ca, environment: local.environment };
      return createServerExplainer(await openNamed(issuer, named.audience, trusting));
    }
  } catch (error) {
    if (error instanceof UsageError || error instanceof StartFailure) throw error;
    throw new UsageError(describe(error));
  }
  return openFromSettings({ flags, environment, keys, input });
}

/** The running `dev` with this issuer, whose certificate no authority of this host has signed. */
async function findLocal(environment: Environment, issuer: string): Promise<LocalService | undefined> {
  const { findLocalService } = await import('../../dev/local-service.ts');
  const local = await findLocalService(environment, issuer);
  return local?.issuer === issuer ? local : undefined;
}

const isLoopback = (issuer: string): boolean => new URL(issuer).hostname === 'localhost';

interface Sources {
  readonly flags: SplitFlags;
  readonly environment: Environment;
  readonly keys: KeyOptions;
  readonly input: CallInput;
  /** The running `dev`, if its settings are used. */
  readonly local?: LocalService;
}

async function openFromSettings({ flags, environment, keys, input, local }: Sources): Promise<Explainer | number> {
  const one = (name: string): string | undefined => flags.texts.get(name)?.[0];
  const audience = flags.texts.get('audience') ?? [];
  const gate = readGate(flags, environment);
  if (typeof gate === 'number') return gate;
  if (gate !== undefined) {
    if ((one('url') ?? input.url) === undefined)
      throw new UsageError('rules are for URLs, and the input has none: add --url, and --method if it is not GET');
    // Loaded only for rules.
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

/** Without settings, opens the running `portcullis dev`; `undefined` if there is none. */
async function openLocal({ environment, keys, ...sources }: Sources): Promise<Explainer | number | undefined> {
  // Loaded only without settings.
  const { findLocalService, describeLocalService } = await import('../../dev/local-service.ts');
  const issuer = textOf(readToken(sources.input).claims['iss']);
  const local = keys.network === 'offline' ? undefined : await findLocalService(environment, issuer);
  if (local === undefined) return undefined;
  process.stderr.write(describeLocalService(local, 'compared with'));
  const trusting = { ...keys, ca: local.ca, environment: local.environment };
  if (local.service !== undefined)
    return openFromSettings({ ...sources, environment: local.environment, keys: trusting, local });
  const opened = await openNamed(local.issuer, [local.audience], trusting);
  return createServerExplainer({ ...opened, labels: labelDev(opened.labels) });
}

function readToken({ headers }: CallInput): ReturnType<typeof readUnverified> {
  return readUnverified((joinHeader(headers, 'authorization') ?? '').replace(/^\S+ +/, ''));
}

/** Reads the settings of a gate and its rules file. Returns an exit status if they are not valid. */
function readGate(
  { texts, rest }: SplitFlags,
  environment: Environment,
): { readonly path: string; readonly settings: Settings } | number | undefined {
  const file = texts.get('rules')?.[0];
  const rivals = ['issuer', 'audience', 'server'].filter((name) => texts.has(name));
  if (file !== undefined && rivals.length > 0)
    throw new UsageError(`--rules and --${rivals[0]} exclude each other: remove one`);
  const result = readGateSettings({ args: file === undefined ? rest : [...rest, '--rules', file], environment });
  if (result.kind === 'settings')
    return result.rules.kind === 'file' ? { path: result.rules.path, settings: result.settings } : undefined;
  // Without rules these may be the settings of a service, which are read next.
  if (file === undefined) return undefined;
  process.stderr.write(formatProblems(result.problems));
  return exitCodes.config;
}

/** Only messages of this program: others may repeat the input. */
function describe(error: unknown): string {
  if (error instanceof TypeError && /^\w+: /.test(error.message)) return error.message;
  if (error instanceof Error && error.name === 'ProviderError') return error.message.replace(/\.$/, '');
  return 'the metadata of --server, or the file of --jwks, cannot be used';
}

export interface ServerOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Audiences of the flags; they precede the `resource` of the metadata. */
  readonly audience: readonly string[];
}

/** Milliseconds. */
const timeout = 5000;

/** Issuer and audience of a running service, from its metadata (RFC 9728). Throws `TypeError` for what has none. */
export async function readServer(
  url: string,
  { environment, audience }: ServerOptions,
): Promise<{ readonly issuer: string; readonly audience: readonly string[] }> {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw new TypeError('server: write a URL, as in https://api.example');
  const address = new URL('/.well-known/oauth-protected-resource', url);
  const fetched = await fetchDocument(address.href, { environment, timeout });
  if (fetched.kind === 'failed')
    throw new StartFailure(
      `no response from ${showUrl(url)}. Start the service, or correct --server.`,
      exitCodes.unavailable,
    );
  const document = fetched.kind === 'response' && isJsonObject(fetched.document) ? fetched.document : {};
  const { resource, authorization_servers: issuers } = document;
  const [issuer] = Array.isArray(issuers) ? issuers : [];
  if (typeof issuer !== 'string')
    throw new TypeError('server: it publishes no metadata that names its issuer (RFC 9728)');
  return { issuer, audience: audience.length > 0 || typeof resource !== 'string' ? audience : [resource] };
}

const maxInput = 64 * 1024 * 1024;

export async function readText(file: string | undefined): Promise<string> {
  if (file === undefined && process.stdin.isTTY) throw new UsageError('there is no input: pipe it in, or add --file');
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    // The writer of the pipe may be slow.
    const stream: AsyncIterable<Uint8Array> = file === undefined ? process.stdin : createReadStream(file);
    for await (const chunk of stream) {
      length += chunk.length;
      if (length > maxInput) throw new UsageError('the input has more than 64 MiB');
      chunks.push(chunk);
    }
    return decode(Buffer.concat(chunks));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(file === undefined ? 'the input cannot be read' : 'the file of --file cannot be read');
  }
}

/** PowerShell writes files in UTF-16. */
function decode(bytes: Buffer): string {
  const isWide = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] !== 0 && bytes[1] === 0 && bytes[3] === 0);
  return bytes.toString(isWide ? 'utf16le' : 'utf8');
}
