import { describe, expect, it, onTestFinished } from 'vitest';
import { startSentinels } from '../../../tools/shared/redis.js';
import { createDpopClient } from '../../support/dpop-client.ts';
import { send } from '../../support/http-client.ts';
import type { OpenedService } from '../../support/open-service.ts';
import { needs } from '../../support/programs.ts';
import { startTestRedis } from '../../support/redis.ts';
import { startTlsRedis } from '../../support/redis-tls.ts';
import { useTestProvider } from '../../support/test-provider.ts';
import { bearer, findVariant, openVariant } from '../../support/variant-service.ts';

const provider = await useTestProvider();

async function start(environment: Readonly<Record<string, string>>): Promise<OpenedService> {
  const service = await openVariant(findVariant('a'), provider, environment);
  onTestFinished(() => void service.stop());
  await service.findLog(({ event }) => event === 'keys_fetched');
  return service;
}

/** The `degraded` parts in `/readyz`. */
async function degraded({ adminUrl = '' }: OpenedService): Promise<unknown> {
  const { json } = await send(adminUrl, '/readyz');
  return (json as { readonly degraded?: unknown }).degraded; // the service writes this shape
}

async function read({ adminUrl = '' }: OpenedService, name: string): Promise<string | undefined> {
  const { body } = await send(adminUrl, '/metrics');
  return new RegExp(`^portcullis_replay_store_${name} (\\d+)$`, 'm').exec(body)?.[1];
}

/** Sends a DPoP request with a new proof. Returns the status. */
async function openSender({ url: base }: OpenedService): Promise<() => Promise<number>> {
  const client = createDpopClient();
  onTestFinished(() => client.close());
  const token = await provider.sign({ cnf: { jkt: client.jkt } });
  const url = `${base}/api/private`;
  return async () => (await client.call(url, { headers: client.headers(token, { url }) })).status;
}

const limits = { interval: 100 };

describe('a Redis that fails', { ...needs('redis-server') }, () => {
  it('out of memory → 503, counted; the connection is up', async () => {
    const redis = await startTestRedis();
    onTestFinished(() => redis.stop());
    const service = await start({ REPLAY_STORE: redis.url, REPLAY_TIMEOUT: '5000' });
    await service.findLog(({ event }) => event === 'replay_store_up');
    const sendProof = await openSender(service);
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    await expect.poll(sendProof, limits).toBe(503);
    expect([await degraded(service), await read(service, 'connected')]).toEqual([undefined, '1']);
    expect(Number(await read(service, 'errors_total'))).toBeGreaterThan(0);
  });

  it('killed → degraded, without a connection; 503 for DPoP, 200 for Bearer', async () => {
    const redis = await startTestRedis();
    onTestFinished(() => redis.stop());
    const service = await start({ REPLAY_STORE: redis.url });
    await service.findLog(({ event }) => event === 'replay_store_up');
    expect([await degraded(service), await read(service, 'connected')]).toEqual([undefined, '1']);
    await redis.kill();
    await service.findLog(({ event }) => event === 'replay_store_down');
    expect([await degraded(service), await read(service, 'connected')]).toEqual([['replay'], '0']);
    expect(await (await openSender(service))()).toBe(503);
    expect((await send(service.url, '/api/private', { headers: bearer(await provider.sign()) })).status).toBe(200);
  });
});

describe('credentials and TLS of Redis', () => {
  it.each([
    ['sentinel without a password, Redis with one', undefined, {}],
    ['each with its own password', 'for-sentinels', { SENTINEL_PASSWORD: 'for-sentinels' }],
  ])('%s → connected', needs('redis-server', 'redis-sentinel'), async (_, sentinelPassword, environment) => {
    const passwords = { password: 'for-redis', ...(sentinelPassword !== undefined && { sentinelPassword }) };
    const group = await startSentinels(passwords);
    onTestFinished(() => group.stop());
    const service = await start({ REPLAY_STORE: group.url, ...environment });
    await service.findLog(({ event }) => event === 'replay_store_up');
    await expect.poll(await openSender(service), limits).toBe(200);
  });

  it(
    'wrong password of the sentinel → replay_store_down with the reason',
    needs('redis-server', 'redis-sentinel'),
    async () => {
      const group = await startSentinels({ password: 'for-redis', sentinelPassword: 'for-sentinels' });
      onTestFinished(() => group.stop());
      const service = await start({ REPLAY_STORE: group.url, SENTINEL_PASSWORD: 'wrong-one' });
      const line = await service.findLog(({ event }) => event === 'replay_store_down');
      expect(line['message']).toMatch(/^WRONGPASS/);
      expect(JSON.stringify(line)).not.toMatch(/wrong-one|for-redis/);
    },
  );

  it.each([
    ['with its authority → up', true, 'up'],
    ['without → down', false, 'down'],
  ])('TLS %s', needs('redis-server'), async (_, isTrusted, state) => {
    const { url, ca, stop } = await startTlsRedis(provider.ca);
    onTestFinished(stop);
    const service = await start({ REPLAY_STORE: url, ...(isTrusted && { NODE_EXTRA_CA_CERTS: ca }) });
    await service.findLog(({ event }) => event === `replay_store_${state}`);
  });
});
