import { closeSync, openSync, writeFileSync } from 'node:fs';
import { isJsonObject, type JsonObject } from '../../core/jose/json.ts';
import { isPlainHttps } from '../../core/outbound/https-address.ts';
import { showText } from '../../core/shown-text.ts';
import type { DecisionDetail, StreamedDecisions } from '../../server/console/wire.ts';
import { readBuild } from '../../server/lifecycle/version.ts';
import { hidden } from '../../server/settings/setting-schemas.ts';
import { UsageError } from '../commands/failure.ts';
import { type ConsoleEvent, openConsoleClient } from '../explain/console-client.ts';
import type { Deployment, FoundDeployments } from './deployments.ts';
import type { Finding } from './finding.ts';
import { fetchDocument, sendRequest } from './requests.ts';

interface BundleSources extends Pick<FoundDeployments, 'deployments' | 'admin'> {
  readonly findings: readonly Finding[];
  /** Limit of each request, in milliseconds. */
  readonly timeout: number;
}

/** Creates a file that only its owner can read. Returns the function that writes it. */
export function createBundleFile(path: string): (bundle: object) => void {
  let file: number;
  try {
    file = openSync(path, 'wx', 0o600);
  } catch {
    throw new UsageError('--bundle: the file exists, or cannot be created. Choose a new file.');
  }
  return (bundle) => {
    writeFileSync(file, `${JSON.stringify(bundle, undefined, 2)}\n`);
    closeSync(file);
  };
}

/** Settings that name clients or users. */
const identities: ReadonlySet<string> = new Set(['LOGOUT_CLIENTS', 'SENTINEL_USERNAME']);

/** Collects facts for a report: without secrets, and without tokens and their identities. */
export async function collectBundle({ deployments, findings, admin, timeout }: BundleSources): Promise<object> {
  const [deployment] = deployments;
  const metrics = admin === undefined ? undefined : await readMetrics(new URL('/metrics', admin), timeout);
  const { node, openssl } = process.versions;
  return {
    version: 1,
    at: new Date().toISOString(),
    portcullis: readBuild(),
    runtime: { node, openssl, platform: process.platform, arch: process.arch },
    settings: deployment.effective.map((each) =>
      identities.has(each.name) && each.value !== '' ? { ...each, value: hidden } : each,
    ),
    findings,
    keys: await Promise.all(deployments.map((deployment) => readKeys(deployment, metrics ?? [], timeout))),
    refusals:
      admin === undefined || metrics === undefined ? unreachable : await readRefusals(admin, deployment, timeout),
    metrics: metrics ?? unreachable,
  };
}

const unreachable = { problem: 'the admin listener is off or does not respond' };

/** Reads the samples that are not zero; `undefined` without a response. */
async function readMetrics(url: URL, timeout: number): Promise<readonly string[] | undefined> {
  const response = await sendRequest(url, { timeout }).catch(() => undefined);
  return response?.status === 200
    ? response.body.split('\n').filter((line) => /^\w.* (?!0$)\S+$/.test(line))
    : undefined;
}

async function readKeys(
  { issuer, environment, ca }: Deployment,
  metrics: readonly string[],
  timeout: number,
): Promise<object> {
  if (issuer === undefined) return { problem: 'no issuer' };
  const fetchObject = async (url: string): Promise<JsonObject> => {
    const fetched = await fetchDocument(url, { environment, ca, timeout });
    return (fetched.kind === 'response' && fetched.document) || {};
  };
  const { jwks_uri: uri } = await fetchObject(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
  const { keys } = isPlainHttps(uri) ? await fetchObject(uri) : {};
  const age = metrics.find((line) => line.startsWith(`portcullis_key_set_age_seconds{issuer="${issuer}"}`));
  return {
    issuer,
    ...(age !== undefined && { ageSeconds: Number(age.replace(/.* /, '')) }),
    keys: (Array.isArray(keys) ? keys : []).filter(isJsonObject).map(describeKey),
  };
}

function describeKey(key: JsonObject): object {
  const members = ['kid', 'kty', 'alg', 'use', 'crv'].map((name) => [name, key[name]] as const);
  return Object.fromEntries(
    members.flatMap(([name, value]) => (typeof value === 'string' ? [[name, showText(value)]] : [])),
  );
}

const maxRefusals = 20;

async function readRefusals(admin: string, deployment: Deployment, timeout: number): Promise<object> {
  const keyFile = deployment.settings?.consoleKeyFile || undefined;
  try {
    const client = await openConsoleClient({ admin, keyFile, settings: [] }, deployment.environment);
    const { decisions } = await readRecent(await client.openEvents(AbortSignal.timeout(timeout)));
    const refused = decisions.filter(({ reason }) => reason !== undefined).slice(-maxRefusals);
    const details = await Promise.all(refused.map(({ id }) => client.findDecision(id)));
    return details.flatMap((detail) => (detail === undefined ? [] : [describeRefusal(detail)]));
  } catch {
    return { problem: 'the console is off, or its key is unknown. Set CONSOLE=on and CONSOLE_KEY_FILE' };
  }
}

/** Reads the first event of the stream, which has the recent decisions. */
async function readRecent(events: AsyncIterable<ConsoleEvent>): Promise<StreamedDecisions> {
  for await (const { streamed } of events) return streamed;
  throw new TypeError('the stream has ended');
}

function describeRefusal({ decision, explanation }: DecisionDetail): object {
  const { at, route, routeKind, status, reason, scheme } = decision;
  const failed = explanation?.checks.find(({ verdict }) => verdict === 'fail');
  return {
    ...{ at, [routeKind]: route, status, reason, scheme },
    ...(failed !== undefined && {
      check: failed.id,
      expected: describeShape(failed.expected),
      seen: describeShape(failed.seen),
      causes: failed.causes?.map(({ id }) => id),
    }),
  };
}

/** Describes the form of a value that may identify a user or a client. */
function describeShape(value: string | readonly string[] | undefined): string {
  if (value === undefined) return 'absent';
  if (typeof value !== 'string') return `list of ${value.length}`;
  if (/^https?:/.test(value)) return 'URL';
  return /\d\d:\d\d:\d\d/.test(value) ? 'time' : `text of ${value.length} characters`;
}
