import { closeSync, openSync, writeFileSync } from 'node:fs';
import { isJsonObject, type JsonObject } from '../../jose/json.ts';
import { isPlainHttps } from '../../outbound/https-address.ts';
import type { DecisionDetail, StreamedDecisions } from '../../server/console/wire.ts';
import { readBuild } from '../../server/lifecycle/version.ts';
import { hidden } from '../../server/settings/setting-schemas.ts';
import { showText } from '../../shown-text.ts';
import { findKeys, readAdmin } from '../explain/console-client.ts';
import type { Deployment } from './deployments.ts';
import type { Finding } from './finding.ts';
import { fetchDocument, sendRequest } from './requests.ts';

export interface BundleSources {
  readonly deployments: readonly [Deployment, ...Deployment[]];
  readonly findings: readonly Finding[];
  /** URL of the admin listener; `undefined` if the settings have none. */
  readonly admin: string | undefined;
  /** Limit of each request, in milliseconds. */
  readonly timeout: number;
}

export interface BundleFile {
  write(bundle: object): void;
}

/** Creates a file that only its owner can read. `undefined` if the file exists or cannot be created. */
export function createBundleFile(path: string): BundleFile | undefined {
  try {
    const file = openSync(path, 'wx', 0o600);
    return {
      write(bundle) {
        writeFileSync(file, `${JSON.stringify(bundle, undefined, 2)}\n`);
        closeSync(file);
      },
    };
  } catch {
    return undefined;
  }
}

/** Settings that name clients or users. */
const identities: ReadonlySet<string> = new Set(['LOGOUT_CLIENTS', 'SENTINEL_USERNAME']);

/** Collects facts for a report: without secrets, and without tokens and their identities. */
export async function collectBundle({ deployments, findings, admin, timeout }: BundleSources): Promise<object> {
  const [{ settings, effective, environment }] = deployments;
  const metrics = admin === undefined ? undefined : await readMetrics(new URL('/metrics', admin), timeout);
  const { node, openssl } = process.versions;
  return {
    version: 1,
    at: new Date().toISOString(),
    portcullis: readBuild(),
    runtime: { node, openssl, platform: process.platform, arch: process.arch },
    settings: effective.map((each) =>
      identities.has(each.name) && each.value !== '' ? { ...each, value: hidden } : each,
    ),
    findings,
    keys: await Promise.all(deployments.map((deployment) => readKeys(deployment, metrics ?? [], timeout))),
    refusals:
      admin === undefined || metrics === undefined
        ? unreachable
        : await readRefusals(admin, findKeys(environment, settings?.consoleKeyFile || undefined), timeout),
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

async function readRefusals(admin: string, keys: readonly string[], timeout: number): Promise<object> {
  try {
    const url = readAdmin(admin);
    const headers = { cookie: await openSession(url, keys, timeout) };
    const read = (path: string): Promise<Response> =>
      fetch(new URL(path, url), { headers, signal: AbortSignal.timeout(timeout) });
    const { decisions } = await readRecent(await read('/console/api/events'));
    const refused = decisions.filter(({ reason }) => reason !== undefined).slice(-maxRefusals);
    const details = await Promise.all(
      // The service writes this shape.
      refused.map(async ({ id }) => (await (await read(`/console/api/decisions/${id}`)).json()) as DecisionDetail),
    );
    return details.map(describeRefusal);
  } catch {
    return { problem: 'the console is off, or its key is unknown. Set CONSOLE=on and CONSOLE_KEY_FILE' };
  }
}

/** Opens a session with the key, which the service replaces. Returns the cookie. */
async function openSession(url: URL, keys: readonly string[], timeout: number): Promise<string> {
  for (const key of keys) {
    const response = await fetch(new URL(`/console?key=${key}`, url), { signal: AbortSignal.timeout(timeout) });
    const [cookie = ''] = (response.headers.get('set-cookie') ?? '').split(';');
    if (response.status === 200) return cookie;
  }
  throw new TypeError('no key opens the console');
}

/** Reads the first event of the stream, which has the recent decisions. */
async function readRecent({ body }: Response): Promise<StreamedDecisions> {
  let text = '';
  for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.includes('\n\n')) break;
  }
  const [, data = ''] = /^event: recent\ndata: (.*)\n/.exec(text) ?? [];
  return JSON.parse(data) as StreamedDecisions; // the service writes this shape
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
