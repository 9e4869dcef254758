import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { readIdentity } from './identity.ts';
import { createIdpClient } from './idp-client.ts';

const url = v.custom<string>((text) => typeof text === 'string' && URL.canParse(text));

const runningIdp = v.object({
  issuer: url,
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
  const folder = runningFolder(cacheFolder);
  const file = join(folder, `${new URL(running.issuer).port}.json`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(file, JSON.stringify(running), { mode: 0o600 });
  return () => rm(file, { force: true });
}

/**
 * Finds the provider that was started last, `only` this one, or first the `preferred` one; `undefined` if none responds. A
 * provider that was killed has left its file behind.
 */
export async function findRunning(cacheFolder: string, only?: string, preferred?: string) {
  const identity = await readIdentity(cacheFolder);
  if (identity === undefined) return undefined;
  const announced = await listRunning(cacheFolder);
  const issuers = announced
    .map(({ issuer }) => issuer)
    .sort((one, other) => Number(other === preferred) - Number(one === preferred));
  const clients = (only === undefined ? issuers : [only]).map((issuer) => createIdpClient(issuer, identity));
  const responding = await Promise.all(clients.map((client) => client.isRunning()));
  const client = clients.find((_client, index) => responding[index]);
  if (client === undefined) return undefined;
  const state: Partial<RunningIdp> = announced.find(({ issuer }) => issuer === client.issuer) ?? {};
  return { ...state, ...client, certificate: identity.certificate, isOneOfSeveral: announced.length > 1 };
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

function runningFolder(cacheFolder: string): string {
  return join(cacheFolder, 'running');
}
