import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { type Answer, send } from './http-client.ts';
import { type OpenedService, openService } from './open-service.ts';
import { type ServiceProcess, type ServiceProcessOptions, startService } from './service-process.ts';
import type { TestProvider } from './test-provider.ts';

/** A request of a client, as a proxy tells the gate of it. */
export interface Asked {
  /** Default GET. */
  readonly method?: string;
  /** Default `api.example`. */
  readonly host?: string;
  /** Path and query. */
  readonly path: string;
  /** Default https. */
  readonly proto?: string;
  /** Names and values in turn. */
  readonly headers?: readonly string[];
}

/** A gate with rules in a file. */
export interface OpenedGate extends OpenedService {
  /** Replaces the rules in the file. */
  writeRules(rules: unknown): Promise<void>;
  /** Takes the file away and lets something else be put there. */
  replaceRules(put: (path: string) => void): Promise<void>;
  /** Sends a subrequest like nginx, Traefik, Caddy and HAProxy. */
  ask(asked: Asked): Promise<Answer>;
  metrics(): Promise<string>;
}

/** A gate that is a process. */
export type GateProcess = OpenedGate & ServiceProcess;

type Environment = Readonly<Record<string, string>>;

/** Opens a gate before the provider, in this process; `rules` is what the file holds, as text or to be written in JSON. */
export function openGate(provider: TestProvider, rules: unknown, environment?: Environment): Promise<OpenedGate> {
  return startWith(openService, { provider, rules, environment });
}

/** Opens a gate for the tests of a file, and stops it after them. */
export async function useGate(...parameters: Parameters<typeof openGate>): Promise<OpenedGate> {
  const gate = await openGate(...parameters);
  afterAll(() => gate.stop());
  return gate;
}

/** Starts a gate in its own process. */
export function startGate(provider: TestProvider, rules: unknown, environment?: Environment): Promise<GateProcess> {
  return startWith(startService, { provider, rules, environment });
}

interface GateOptions {
  readonly provider: TestProvider;
  readonly rules: unknown;
  readonly environment: Environment | undefined;
}

async function startWith<T extends OpenedService>(
  start: (options: ServiceProcessOptions) => Promise<T>,
  { provider, rules, environment }: GateOptions,
): Promise<OpenedGate & T> {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-gate-'));
  const file = join(folder, 'rules.json');
  const writeRules = async (content: unknown): Promise<void> => {
    // At once, as a deployment does it.
    await writeFile(`${file}.new`, typeof content === 'string' ? content : JSON.stringify(content));
    await rename(`${file}.new`, file);
  };
  await writeRules(rules);
  const removeFolder = () => rm(folder, { recursive: true, force: true });
  const service = await start({
    command: 'gate',
    args: ['--rules', file],
    environment: { NODE_EXTRA_CA_CERTS: provider.caFile, ...environment },
  }).catch(async (error: unknown) => {
    await removeFolder();
    throw error;
  });
  return Object.assign(Object.create(service) as T, {
    writeRules,
    async replaceRules(put: (path: string) => void) {
      await rm(file, { recursive: true });
      put(file);
    },
    ask: (asked: Asked) => send(service.url, '/forward-auth', { headers: tell(asked) }),
    metrics: async () => (await send(service.adminUrl ?? '', '/metrics')).body,
    async stop() {
      const code = await service.stop();
      await removeFolder();
      return code;
    },
  });
}

/** Headers with which a proxy describes a request. */
export function tell({
  method = 'GET',
  host = 'api.example',
  path,
  proto = 'https',
  headers = [],
}: Asked): readonly string[] {
  return [
    ...['X-Forwarded-Method', method, 'X-Forwarded-Proto', proto],
    ...['X-Forwarded-Host', host, 'X-Forwarded-Uri', path],
    ...headers,
  ];
}
