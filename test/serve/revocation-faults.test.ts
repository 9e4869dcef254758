import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { runCommand } from '../support/command-runs.ts';
import { signLogout } from '../support/logout.ts';
import type { OpenedService } from '../support/open-service.ts';
import { needs } from '../support/programs.ts';
import { startTlsRedis } from '../support/redis-tls.ts';
import { askAdmin, startRedis, statusOf as status, useSessions } from '../support/sessions.ts';
import { useTestProvider } from '../support/test-provider.ts';

const provider = await useTestProvider();
const { start, startProcess, token } = useSessions(provider);

const logoutBody = async (sid = 's1') => new URLSearchParams({ logout_token: await signLogout(provider, sid) });
/** Sends a logout token; the status, or 0 if the connection broke. */
const sendLogout = async (service: OpenedService, body: URLSearchParams): Promise<number> =>
  fetch(`${service.url}/backchannel-logout`, { method: 'POST', body }).then(
    ({ status }) => status,
    () => 0,
  );
const limits = { timeout: 60_000, interval: 50 };

describe('faults while a logout is being stored', { ...needs('redis-server') }, () => {
  it('SIGTERM → the sender gets 200 and every instance refuses, or its retry does', async () => {
    const redis = await startRedis();
    const settings = { LOGOUT_CLIENTS: 'app', REVOCATION_STORE: redis.url };
    const [first, second] = [await startProcess(settings), await start(settings)];
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
    expect(await status(second, await token({ sid: 's2' }))).toBe(200);
    expect((await first.ended).code).toBe(0); // a second signal would end it at once
  });

  it('Redis out of memory → 400 and known cutoffs apply; with memory again the retry gets 200', async () => {
    const redis = await startRedis();
    const service = await start({ LOGOUT_CLIENTS: 'app', REVOCATION_STORE: redis.url });
    const [known, ended] = [await token(), await token({ sid: 's2' })];
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
    const second = await start(environment);
    const first = await start(environment);
    expect(await askAdmin(second, '/readyz')).toMatchObject({
      status: 200,
      json: { degraded: ['revocation'], checks: { revocation: expect.stringContaining('another program') } },
    });
    const { body } = await askAdmin(second, '/metrics');
    expect(body).toMatch(/^portcullis_revocation_records_invalid_total 1$/m);
    await second.findLog(({ event, values }) => event === 'revocation_records_invalid' && values === 1);
    const bearer = await token();
    expect(await sendLogout(second, await logoutBody())).toBe(200);
    await vi.waitFor(async () => expect(await status(first, bearer)).toBe(401), limits);
  });

  it('Redis over TLS → two instances, revoke and revoke --list', async () => {
    const { url, ca, stop } = await startTlsRedis(provider.ca);
    onTestFinished(stop);
    const settings = { ...{ LOGOUT_CLIENTS: 'app', REVOCATION_STORE: url }, NODE_EXTRA_CA_CERTS: ca };
    const [first, second] = [await start(settings), await start(settings)];
    const ended = await token();
    expect([await status(first, ended), await status(second, ended)]).toEqual([200, 200]);
    expect(await sendLogout(first, await logoutBody())).toBe(200);
    await vi.waitFor(async () => expect(await status(second, ended)).toBe(401), limits);
    const environment = { ...settings, ISSUER: provider.issuer };
    expect(await runCommand(['revoke', '--sub', 'bob'], environment)).toMatchObject({ status: 0, stderr: '' });
    expect((await runCommand(['revoke', '--list'], environment)).stdout.split('\n').length).toBe(3);
  });
});
