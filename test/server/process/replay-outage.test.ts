import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createDpopClient } from '../../support/dpop-client.ts';
import { send } from '../../support/http-client.ts';
import { needs } from '../../support/programs.ts';
import { startTestRedis } from '../../support/redis.ts';
import { startSentinels } from '../../support/redis-groups.ts';
import { answerCheck, startImpostor } from '../../support/redis-store.ts';
import { startTlsRedis } from '../../support/redis-tls.ts';
import type { ServiceProcess } from '../../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../../support/test-provider.ts';
import { findVariant, startVariant } from '../../support/variant-service.ts';

let provider: TestProvider;
beforeAll(async () => {
  provider = await startTestProvider();
});
afterAll(() => provider.close());

async function start(environment: Readonly<Record<string, string>>): Promise<ServiceProcess> {
  const service = await startVariant(findVariant('a'), provider, environment);
  onTestFinished(() => void service.stop());
  return service;
}

/** The `degraded` parts in `/readyz`. */
async function degraded({ adminUrl = '' }: ServiceProcess): Promise<unknown> {
  const { json } = await send(adminUrl, '/readyz');
  return (json as { readonly degraded?: unknown }).degraded; // the service writes this shape
}

async function gauge({ adminUrl = '' }: ServiceProcess): Promise<string | undefined> {
  const { body } = await send(adminUrl, '/metrics');
  return /^portcullis_replay_store_connected (\d)$/m.exec(body)?.[1];
}

/** Sends a DPoP request with a new proof. Returns the status. */
async function openSender({ url: base }: ServiceProcess): Promise<() => Promise<number>> {
  const client = createDpopClient();
  onTestFinished(() => client.close());
  const token = await provider.sign({ cnf: { jkt: client.jkt } });
  const url = `${base}/api/private`;
  return async () => (await client.call(url, { headers: client.headers(token, { url }) })).status;
}

const limits = { timeout: 20_000, interval: 100 };

describe('Redis that is connected and refuses proofs', { timeout: 60_000, ...needs('redis-server') }, () => {
  it('out of memory → degraded, with the reason in the log; ready again without a request', async () => {
    const redis = await startTestRedis();
    onTestFinished(() => redis.stop());
    const service = await start({ REPLAY_STORE: redis.url, REPLAY_TIMEOUT: '5000' });
    await service.findLog(({ event }) => event === 'replay_store_up');
    expect(await degraded(service)).toBeUndefined();
    expect(await gauge(service)).toBe('1');

    const sendProof = await openSender(service);
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    await expect.poll(sendProof, limits).toBe(503);
    expect(await degraded(service)).toEqual(['replay']);
    const { message } = await service.findLog(({ event }) => event === 'replay_store_down');
    expect(message).toMatch(/^OOM /);

    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    await expect.poll(() => degraded(service), limits).toBeUndefined();
    // The gauge shows the last 30 s.
    expect(await gauge(service)).toBe('0');
  });

  it('slower than REPLAY_TIMEOUT → degraded while the connection comes and goes', async () => {
    const slow = await startImpostor(answerCheck);
    const service = await start({ REPLAY_STORE: slow.url, REPLAY_TIMEOUT: '100' });
    await service.findLog(({ event }) => event === 'replay_store_up');
    const sendProof = await openSender(service);
    expect(await sendProof()).toBe(503);
    const seen = new Set<string>();
    for (let count = 0; count < 20; count++) {
      seen.add(`${JSON.stringify(await degraded(service))} ${await gauge(service)}`);
      await sleep(100);
    }
    expect([...seen]).toEqual(['["replay"] 0']);
  });
});

describe('credentials and certificates for Redis', { timeout: 60_000 }, () => {
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

  describe('TLS with client certificates', needs('redis-server'), () => {
    async function startTls() {
      const redis = await startTlsRedis();
      onTestFinished(() => redis.stop());
      return redis;
    }

    it('authority and client certificate → connected', async () => {
      const { url, files } = await startTls();
      const certificate = { REPLAY_CERT: files.cert, REPLAY_KEY: files.key };
      const service = await start({ REPLAY_STORE: url, REPLAY_CA: files.ca, ...certificate });
      await service.findLog(({ event }) => event === 'replay_store_up');
      await expect.poll(await openSender(service), limits).toBe(200);
    });

    it('no client certificate → down', async () => {
      const { url, files } = await startTls();
      const service = await start({ REPLAY_STORE: url, REPLAY_CA: files.ca });
      await service.findLog(({ event }) => event === 'replay_store_down');
      expect(await degraded(service)).toEqual(['replay']);
    });

    it.each([
      ['missing file', { REPLAY_STORE: 'rediss://localhost:1', REPLAY_CA: '/nonexistent/ca' }, 'REPLAY_CA'],
      ['certificate without key', { REPLAY_STORE: 'rediss://localhost:1', REPLAY_CERT: '/some/cert' }, 'REPLAY_KEY'],
      ['URL without TLS', { REPLAY_STORE: 'redis://localhost:1', REPLAY_CA: import.meta.filename }, 'rediss'],
    ])('%s → 78', async (_, environment, name) => {
      await expect(startVariant(findVariant('a'), provider, environment)).rejects.toMatchObject({
        end: { code: 78 },
        stderr: expect.stringContaining(name),
      });
    });
  });
});
