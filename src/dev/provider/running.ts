import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Identity, readIdentity } from './identity.ts';
import { createIdpClient, type IdpClient } from './idp-client.ts';

/** What a running provider says of itself in the cache folder. */
export interface RunningIdp {
  readonly issuer: string;
  readonly pid: number;
  /** Time of the start. Seconds since the epoch. */
  readonly started: number;
  /** Audience of its tokens. */
  readonly audience?: string;
  /** URL of the service that was started with it. */
  readonly service?: string;
  /** Variables that this service was set by; none of them is a secret. */
  readonly variables?: Readonly<Record<string, string>>;
}

/** A running provider and the certificate of its listener. */
export interface LocalParty extends RunningIdp {
  /** PEM. */
  readonly certificate: string;
}

/** Says that a provider runs on a port, until the returned function is called. */
export async function announceRunning(cacheFolder: string, running: RunningIdp): Promise<() => Promise<void>> {
  const file = runningFile(cacheFolder, running.issuer);
  await mkdir(runningFolder(cacheFolder), { recursive: true, mode: 0o700 });
  await writeFile(file, JSON.stringify(running), { mode: 0o600 });
  return () => rm(file, { force: true });
}

/** The provider with this issuer, or else the one that was started last; `undefined` where none answers. */
export async function findRunning(cacheFolder: string, issuer?: string): Promise<IdpClient | undefined> {
  const identity = await readIdentity(cacheFolder);
  if (identity === undefined) return undefined;
  const issuers = issuer === undefined ? (await listRunning(cacheFolder)).map((running) => running.issuer) : [issuer];
  return findAnswering(issuers, identity);
}

/** What a provider says of itself: the one with this issuer, or else the one that was started last; `undefined` where none answers. */
export async function findParty(cacheFolder: string, issuer: string): Promise<LocalParty | undefined> {
  const identity = await readIdentity(cacheFolder);
  if (identity === undefined) return undefined;
  const all = await listRunning(cacheFolder);
  const issuers = all.map((running) => running.issuer);
  const first = issuers.includes(issuer) ? [issuer] : [];
  const client = await findAnswering([...first, ...issuers], identity);
  const party = all.find((running) => running.issuer === client?.issuer);
  return party && { ...party, certificate: identity.certificate };
}

async function findAnswering(issuers: readonly string[], identity: Identity): Promise<IdpClient | undefined> {
  const clients = issuers.map((one) => createIdpClient(one, identity));
  // A provider that was killed has left its file behind: only one that answers runs.
  const answers = await Promise.all(clients.map((client) => client.isRunning()));
  return clients.find((_client, index) => answers[index]);
}

/** URL of the service that was started with the provider of this issuer; `undefined` where none was. */
export async function findService(cacheFolder: string, issuer: string): Promise<string | undefined> {
  return (await readRunning(runningFile(cacheFolder, issuer)))?.service;
}

/** What has said that it runs, the latest first. */
async function listRunning(cacheFolder: string): Promise<readonly RunningIdp[]> {
  const folder = runningFolder(cacheFolder);
  const names = await readdir(folder).catch(() => []);
  const found = await Promise.all(names.map((name) => readRunning(join(folder, name))));
  return found.filter((running) => running !== undefined).sort((one, other) => other.started - one.started);
}

async function readRunning(file: string): Promise<RunningIdp | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(file, 'utf8'));
    return isRunningIdp(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isRunningIdp(value: unknown): value is RunningIdp {
  const { issuer, started, audience, service, variables }: Readonly<Record<string, unknown>> = Object(value);
  return (
    isUrl(issuer) &&
    typeof started === 'number' &&
    (audience === undefined || typeof audience === 'string') &&
    (service === undefined || isUrl(service)) &&
    (variables === undefined || Object.values(Object(variables)).every((each) => typeof each === 'string'))
  );
}

function isUrl(value: unknown): boolean {
  return typeof value === 'string' && URL.canParse(value);
}

function runningFile(cacheFolder: string, issuer: string): string {
  return join(runningFolder(cacheFolder), `${new URL(issuer).port}.json`);
}

function runningFolder(cacheFolder: string): string {
  return join(cacheFolder, 'running');
}
