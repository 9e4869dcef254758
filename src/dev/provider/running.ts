import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { type Identity, readIdentity } from './identity.ts';
import { createIdpClient, type IdpClient } from './idp-client.ts';

const url = v.pipe(
  v.string(),
  v.check((text) => URL.canParse(text)),
);

const runningIdp = v.object({
  issuer: url,
  pid: v.exactOptional(v.number()),
  /** Start time, in seconds since the epoch. */
  started: v.number(),
  audience: v.exactOptional(v.string()),
  service: v.exactOptional(url),
  admin: v.exactOptional(url),
  /** Variables of the service, without secrets. */
  variables: v.exactOptional(v.record(v.string(), v.string())),
});

const stateFile = v.pipe(v.string(), v.parseJson(), runningIdp);

export type RunningIdp = Readonly<v.InferOutput<typeof runningIdp>>;

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
export async function findLocalProvider(cacheFolder: string, issuer: string) {
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

/** Counts the announced providers. */
export async function countRunning(cacheFolder: string): Promise<number> {
  return (await listRunning(cacheFolder)).length;
}

/** Lists the announced providers, the latest first. */
async function listRunning(cacheFolder: string): Promise<readonly RunningIdp[]> {
  const folder = runningFolder(cacheFolder);
  const names = await readdir(folder).catch(() => []);
  const found = await Promise.all(names.map((name) => readRunning(join(folder, name))));
  return found.filter((running) => running !== undefined).sort((one, other) => other.started - one.started);
}

async function readRunning(file: string): Promise<RunningIdp | undefined> {
  const result = v.safeParse(stateFile, await readFile(file, 'utf8').catch(() => undefined));
  return result.success ? result.output : undefined;
}

function runningFile(cacheFolder: string, issuer: string): string {
  return join(runningFolder(cacheFolder), `${new URL(issuer).port}.json`);
}

function runningFolder(cacheFolder: string): string {
  return join(cacheFolder, 'running');
}
