import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { runCommand } from '../support/command-runs.ts';
import { signLogout } from '../support/logout.ts';
import { type OpenedService, openService } from '../support/open-service.ts';
import { needs } from '../support/programs.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { startTlsRedis } from '../support/redis-tls.ts';
import { awaitReady, startService } from '../support/service-process.ts';
import { useTestProvider } from '../support/test-provider.ts';

const provider = await useTestProvider();
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

type Environment = Readonly<Record<string, string>>;

async function start<T extends OpenedService = OpenedService>(
  environment: Environment,
  open: (options: { readonly environment: Environment }) => Promise<T>,
): Promise<T> {
  const { issuer: ISSUER, audience: IDP_AUDIENCE, caFile: NODE_EXTRA_CA_CERTS } = provider;
  const service = await open({ environment: { ISSUER, IDP_AUDIENCE, NODE_EXTRA_CA_CERTS, ...environment } });
  closers.push(() => service.stop());
  await awaitReady(service);
  return service;
}

async function startRedis(): Promise<TestRedis> {
  const redis = await startTestRedis();
  closers.push(() => redis.stop());
  return redis;
}

const now = (): number => Math.floor(Date.now() / 1000);
const token = (sid = 's1') => provider.sign({ sid, sub: 'ann', iat: now() - 30 });
const logoutBody = async (sid = 's1') => new URLSearchParams({ logout_token: await signLogout(provider, sid) });
/** Sends a logout token; the status, or 0 if the connection broke. */
const sendLogout = async (service: OpenedService, body: URLSearchParams): Promise<number> =>
  fetch(`${service.url}/backchannel-logout`, { method: 'POST', body }).then(
    ({ status }) => status,
    () => 0,
  );
const status = async (service: OpenedService, bearer: string): Promise<number> =>
  (await fetch(`${service.url}/api/private`, { headers: { authorization: `Bearer ${bearer}` } })).status;
const limits = { timeout: 60_000, interval: 50 };

describe('faults while a logout is being stored', { ...needs('redis-server') }, () => {
  it('SIGTERM → the sender gets 200 and every instance refuses, or its retry does', async () => {
    const redis = await startRedis();
    const settings = { LOGOUT_CLIENTS: 'app', REVOCATION_STORE: redis.url };
    const [first, second] = [await start(settings, startService), await start(settings, openService)];
    const ended = await token();
    expect([await status(first, ended), await status(second, ended)]).toEqual([200, 200]);
    const body = await logoutBody();
    redis.freeze();
    const sent = sendLogout(first, body);
    await sleep(50); // the write is in flight
    first.signal('SIGTERM');
    await first.findLog(({ event }) => event === 'shutting_down');
    redis.thaw();
    const outcome = await sent;
    if (outcome !== 200) await vi.waitFor(async () => expect(await sendLogout(second, body)).toBe(200), limits);
    await vi.waitFor(async () => expect(await status(second, ended)).toBe(401), limits);
    expect(await status(second, await token('s2'))).toBe(200);
    expect((await first.ended).code).toBe(0); // a second signal would end it at once
  });

  it('Redis out of memory → 400 and known cutoffs apply; with memory again the retry gets 200', async () => {
    const redis = await startRedis();
    const service = await start({ LOGOUT_CLIENTS: 'app', REVOCATION_STORE: redis.url }, openService);
    const [known, ended] = [await token('s1'), await token('s2')];
    expect(await sendLogout(service, await logoutBody('s1'))).toBe(200);
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    const body = await logoutBody('s2');
    expect(await sendLogout(service, body)).toBe(400);
    expect([await status(service, known), await status(service, ended)]).toEqual([401, 200]);
    expect(await service.findLog(({ event }) => event === 'logout_failed')).toMatchObject({
      message: expect.stringContaining('OOM'),
    });
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    await vi.waitFor(async () => expect(await sendLogout(service, body)).toBe(200), limits);
    expect(await status(service, ended)).toBe(401);
  });

  it('values of another program → counted, degraded, and a logout applies everywhere', async () => {
    const redis = await startRedis();
    const environment = { REVOCATION_STORE: redis.url, LOGOUT_CLIENTS: 'app' };
    await redis.command('HSET', 'portcullis:revocation:{all}:records', 'nonsense', 'x');
    const second = await start(environment, openService);
    const first = await start(environment, openService);
    const ready = await fetch(`${second.adminUrl}/readyz`);
    expect([ready.status, await ready.json()]).toEqual([
      200,
      expect.objectContaining({
        degraded: ['revocation'],
        checks: expect.objectContaining({ revocation: expect.stringContaining('another program') }),
      }),
    ]);
    expect(await (await fetch(`${second.adminUrl}/metrics`)).text()).toMatch(
      /^portcullis_revocation_records_invalid_total 1$/m,
    );
    await second.findLog(({ event, values }) => event === 'revocation_records_invalid' && values === 1);
    const bearer = await token();
    expect(await sendLogout(second, await logoutBody())).toBe(200);
    await vi.waitFor(async () => expect(await status(first, bearer)).toBe(401), limits);
  });

  it('Redis over TLS → two instances, revoke and revoke --list', async () => {
    const { url, ca, stop } = await startTlsRedis(provider.ca);
    closers.push(stop);
    const settings = { ...{ LOGOUT_CLIENTS: 'app', REVOCATION_STORE: url }, NODE_EXTRA_CA_CERTS: ca };
    const [first, second] = [await start(settings, openService), await start(settings, openService)];
    const ended = await token();
    expect([await status(first, ended), await status(second, ended)]).toEqual([200, 200]);
    expect(await sendLogout(first, await logoutBody())).toBe(200);
    await vi.waitFor(async () => expect(await status(second, ended)).toBe(401), limits);
    const environment = { ...settings, ISSUER: provider.issuer };
    expect(await runCommand(['revoke', '--sub', 'bob'], environment)).toMatchObject({ status: 0, stderr: '' });
    expect((await runCommand(['revoke', '--list'], environment)).stdout.split('\n').length).toBe(3);
  });
});
