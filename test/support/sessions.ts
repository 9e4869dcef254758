import { onTestFinished } from 'vitest';
import { send } from './http-client.ts';
import { type OpenedService, openService } from './open-service.ts';
import { startTestRedis } from './redis.ts';
import { awaitReady, startService } from './service-process.ts';
import type { TestProvider } from './test-provider.ts';

type Environment = Readonly<Record<string, string>>;

export const now = (): number => Math.floor(Date.now() / 1000);

/** Status of a request with this token. */
export async function statusOf({ url }: OpenedService, token: string): Promise<number> {
  return (await send(url, '/api/private', { headers: ['authorization', `Bearer ${token}`] })).status;
}

/** Path of the admin listener. */
export async function askAdmin({ adminUrl = '' }: OpenedService, path: '/metrics' | '/readyz') {
  return send(adminUrl, path);
}

/** A Redis until the end of the test. */
export async function startRedis() {
  const redis = await startTestRedis();
  onTestFinished(async () => void (await redis.stop()));
  return redis;
}

/** Services of a provider, each until the end of its test, and tokens of the session `s1`. */
export function useSessions({ issuer, audience, caFile, sign }: TestProvider) {
  const settingsOf = (environment: Environment): { readonly environment: Environment } => ({
    environment: { ISSUER: issuer, IDP_AUDIENCE: audience, NODE_EXTRA_CA_CERTS: caFile, ...environment },
  });
  async function keep<T extends OpenedService>(opening: Promise<T>): Promise<T> {
    const service = await opening;
    onTestFinished(async () => void (await service.stop()));
    return service;
  }
  async function ready<T extends OpenedService>(opening: Promise<T>): Promise<T> {
    const service = await keep(opening);
    await awaitReady(service);
    return service;
  }
  return {
    settingsOf,
    open: (environment: Environment) => keep(openService(settingsOf(environment))),
    start: (environment: Environment) => ready(openService(settingsOf(environment))),
    startProcess: (environment: Environment) => ready(startService(settingsOf(environment))),
    token: (claims: object = {}) => sign({ sid: 's1', sub: 'ann', client_id: 'app', iat: now() - 30, ...claims }),
  };
}
