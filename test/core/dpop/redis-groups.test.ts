import { createClient, createCluster } from '@redis/client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createNonces } from '../../../src/core/dpop/nonce.ts';
import { until } from '../../../tools/shared/network.js';
import { startCluster, startSentinels } from '../../../tools/shared/redis.js';
import { needs } from '../../support/programs.ts';
import { startTestRedis } from '../../support/redis.ts';
import { openConnectedStore, openStore, refusal } from '../../support/redis-store.ts';

const jkt = 'A'.repeat(43);
const now = (): number => Math.floor(Date.now() / 1000);
/** The last moment of a proof that is made in three seconds: after whatever is lost now. */
const later = (): number => now() + 303;
const nonces = createNonces({ secret: 'a secret of thirty-two characters' });

describe.each([
  { kind: 'sentinels', start: startSentinels, programs: ['redis-server', 'redis-sentinel'] },
  { kind: 'a cluster', start: () => startCluster('{portcullis:serve}:probe'), programs: ['redis-server'] },
] as const)('a replay store behind $kind', ({ start, programs }) => {
  it('a failover in the middle → nothing used is accepted again, new proofs are, after a required nonce', {
    ...needs(...programs),
  }, async () => {
    const group = await start();
    onTestFinished(() => group.stop());
    const changes: string[] = [];
    const stores = [
      await openStore(group.url, { timeout: 1, onConnection: (state) => changes.push(state) }),
      await openStore(group.url, { timeout: 1 }),
    ] as const;
    await until(() => stores.every(({ connected }) => connected));
    const used = later();
    expect(await stores[0].witness(jkt, 'used', used)).toBe(true);
    expect(await stores[1].witness(jkt, 'used', used)).toBe(false);
    await until(() => now() > used - 300);

    await group.failOver();
    // The replica may lack the record: the last ones of a master are lost with it.
    const { command } = group.replica;
    for (const record of /\S*:jti:\S+/g.exec(await command('KEYS', '*:jti:*')) ?? []) {
      await command('DEL', record);
    }
    await until(() => stores.every(({ connected }) => connected));
    let attempt = 0;
    for (const store of stores) {
      expect(await store.witness(jkt, 'used', used)).not.toBe(true);
      await until(async () => {
        const { reason } = await refusal(store.witness(jkt, `old ${attempt++}`, used));
        return reason === 'proof_before_start';
      });
    }
    const nonce = nonces.issue(now(), stores[0].generation);
    const read = () => nonces.read(nonce, now());
    expect(await stores[1].witness(jkt, 'new', now() + 180, read)).toBe(true);
    expect(await stores[0].witness(jkt, 'new', now() + 180, read)).toBe(false);
    const newer = later();
    expect(await stores[0].witness(jkt, 'newer', newer)).toBe(true);
    expect(await stores[1].witness(jkt, 'newer', newer)).toBe(false);
    // A first attempt may fail on a busy host: that is reported too.
    expect(changes).toContain('up');
  });
});

describe('a client of the caller’s own', needs('redis-server'), () => {
  it('one Redis → used, and left connected', async () => {
    const redis = await startTestRedis();
    onTestFinished(() => redis.stop());
    const client = createClient({ url: redis.url });
    onTestFinished(() => client.destroy());
    client.on('error', () => undefined);
    const store = await openStore(client);
    await client.connect();
    await until(() => store.connected);
    expect([await store.witness(jkt, 'a', later()), await store.witness(jkt, 'a', later())]).toEqual([true, false]);
    store.close();
    expect(client.isReady).toBe(true);
    expect((await refusal(store.witness(jkt, 'a', later()))).reason).toBe('replay_store_unavailable');
  });

  it('a cluster → all keys are in one slot', async () => {
    const group = await startCluster();
    onTestFinished(() => group.stop());
    const [, nodes = ''] = group.url.split('//');
    const client = createCluster({ rootNodes: nodes.split(',').map((node) => ({ url: `redis://${node}` })) });
    client.on('error', () => undefined);
    await client.connect();
    onTestFinished(() => client.destroy());
    const store = await openConnectedStore(client, { namespace: 'gate' });
    for (let index = 0; index < 20; index++) expect(await store.witness(jkt, `${index}`, later())).toBe(true);
    expect(await store.witness(jkt, '0', later())).toBe(false);
  });
});
