import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Identity, readIdentity } from './identity.ts';
import { createIdpClient, type IdpClient } from './idp-client.ts';

export interface RunningIdp {
  readonly issuer: string;
  readonly pid: number;
  /** Start time, in seconds since the epoch. */
  readonly started: number;
  readonly audience?: string;
  readonly service?: string;
  readonly admin?: string;
  /** Variables of the service, without secrets. */
  readonly variables?: Readonly<Record<string, string>>;
}

export interface LocalProvider extends RunningIdp {
  /** PEM. */
  readonly certificate: string;
}

/** Writes the state of a provider. The returned function removes it. */
export async function announceRunning(cacheFolder: string, running: RunningIdp): Promise<() => Promise<void>> {
  const file = runningFile(cacheFolder, running.issuer);
  await mkdir(runningFolder(cacheFolder), { recursive: true, mode: 0o700 });
  await writeFile(file, JSON.stringify(running), { mode: 0o600 });
  return () => rm(file, { force: true });
}

/** Finds the provider with this issuer, otherwise the one that was started last; `undefined` if none responds. */
export async function findRunning(cacheFolder: string, issuer?: string): Promise<IdpClient | undefined> {
  const identity = await readIdentity(cacheFolder);
  if (identity === undefined) return undefined;
  const issuers = issuer === undefined ? (await listRunning(cacheFolder)).map((running) => running.issuer) : [issuer];
  return findResponding(issuers, identity);
}

/** Finds the state of the provider with this issuer, otherwise of the one that was started last; `undefined` if none responds. */
export async function findLocalProvider(cacheFolder: string, issuer: string): Promise<LocalProvider | undefined> {
  const identity = await readIdentity(cacheFolder);
  if (identity === undefined) return undefined;
  const all = await listRunning(cacheFolder);
  const issuers = all.map((running) => running.issuer);
  const first = issuers.includes(issuer) ? [issuer] : [];
  const client = await findResponding([...first, ...issuers], identity);
  const provider = all.find((running) => running.issuer === client?.issuer);
  return provider && { ...provider, certificate: identity.certificate };
}

async function findResponding(issuers: readonly string[], identity: Identity): Promise<IdpClient | undefined> {
  const clients = issuers.map((one) => createIdpClient(one, identity));
  // A provider that was killed has left its file behind.
  const responding = await Promise.all(clients.map((client) => client.isRunning()));
  return clients.find((_client, index) => responding[index]);
}

export async function findService(cacheFolder: string, issuer: string): Promise<string | undefined> {
  return (await readRunning(runningFile(cacheFolder, issuer)))?.service;
}

/** Lists the announced providers, the latest first. */
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
  const { issuer, started, audience, service, admin, variables }: Readonly<Record<string, unknown>> = Object(value);
  return (
    isUrl(issuer) &&
    typeof started === 'number' &&
    (audience === undefined || typeof audience === 'string') &&
    (service === undefined || isUrl(service)) &&
    (admin === undefined || isUrl(admin)) &&
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
