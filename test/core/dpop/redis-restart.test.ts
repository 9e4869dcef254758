import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createNonces } from '../../../src/core/dpop/nonce.ts';
import { replayName } from '../../../src/core/dpop/replay.ts';
import type { RedisReplayOptions, RedisReplayStore } from '../../../src/core/dpop/replay-redis.ts';
import { findFreePort, until } from '../../../tools/shared/network.js';
import { needs } from '../../support/programs.ts';
import { startTestRedis, type TestRedis } from '../../support/redis.ts';
import { answerCheck, openConnectedStore, openStore, refusal, startImpostor } from '../../support/redis-store.ts';

const jkt = 'A'.repeat(43);
const key = 'portcullis:run';
const now = (): number => Math.floor(Date.now() / 1000);
/** The last moment of a proof that was made then. */
const madeAt = (iat: number): number => iat + 300;
/** Of a proof from after whatever is lost now. */
const soon = (): number => madeAt(now() + 3);

describe('since when Redis remembers', needs('redis-server'), () => {
  let redis: TestRedis;

  beforeEach(async () => {
    redis = await startTestRedis();
    return redis.stop;
  });

  const read = async (name: string): Promise<string> => (await redis.command('GET', name)).split('\r\n')[1] ?? '';
  const readRun = async (): Promise<string> => /run_id:(\w+)/.exec(await redis.command('INFO', 'server'))?.[1] ?? '';
  const readSince = async (): Promise<number> => Number((await read(key)).split(' ')[1]);
  const openConnected = async (options?: RedisReplayOptions): Promise<RedisReplayStore> => {
    const store = await openConnectedStore(redis.url, { timeout: 2, ...options });
    return store;
  };
  const reasonOf = async (store: RedisReplayStore, jti: string, iat: number): Promise<string> =>
    (await refusal(store.witness(jkt, jti, madeAt(iat)))).reason;

  it('fresh Redis → it says since when, and earlier proofs need a nonce', async () => {
    const before = now();
    const store = await openConnected();
    const since = await readSince();
    expect(since).toBeGreaterThanOrEqual(before + 2);
    expect(since).toBeLessThanOrEqual(now() + 2);
    expect(await store.witness(jkt, 'a', madeAt(since))).toBe(true);
    expect([await reasonOf(store, 'b', since - 1), store.errors]).toEqual(['proof_before_start', 0]);
    expect((await read(key)).split(' ')[0]).toBe(await readRun());
    expect(await read('portcullis:generation')).toBe(String(store.generation));
    expect(await redis.command('PTTL', key)).toMatch(/^:-1\r/);
  });

  it('with a nonce that is younger than the loss → accepted by every instance; with an older one → a new nonce is required', async () => {
    const nonces = createNonces({ secret: 'a secret of thirty-two characters' });
    const stores = [await openConnected(), await openConnected()] as const;
    const old = nonces.issue(now(), stores[0].generation);
    await redis.command('FLUSHALL');
    const witness = (store: RedisReplayStore, nonce: string) =>
      store.witness(jkt, nonce, madeAt(now() - 120), () => nonces.read(nonce, now()));
    expect((await refusal(witness(stores[0], old))).reason).toBe('proof_before_start');
    const fresh = nonces.issue(now(), stores[0].generation);
    expect([await witness(stores[1], fresh), await witness(stores[0], fresh)]).toEqual([true, false]);
  });

  it('Redis killed and back empty → used proofs refused by all who saw it, and by one who starts now; new ones accepted', async () => {
    const stores = [await openConnected(), await openConnected()];
    const used = await readSince();
    for (const [index, store] of stores.entries())
      expect(await store.witness(jkt, 'a', madeAt(used))).toBe(index === 0);
    await until(() => now() >= used);
    await redis.kill();
    await until(() => stores.every(({ connected }) => !connected));
    await redis.restart();
    await until(() => stores.every(({ connected }) => connected));
    stores.push(await openConnected());
    await until(async () => (await readSince()) > used);
    for (const store of stores) {
      expect(await store.witness(jkt, 'a', madeAt(used))).not.toBe(true);
      expect(await reasonOf(store, `${stores.indexOf(store)}`, used)).toBe('proof_before_start');
    }
    const until300 = madeAt(await readSince());
    for (const [index, store] of stores.entries()) expect(await store.witness(jkt, 'b', until300)).toBe(index === 0);
  });

  it.each(['FLUSHALL', 'FLUSHDB'])(
    '%s on a live connection → a used proof is refused, new ones are accepted',
    async (command) => {
      const store = await openConnected();
      const iat = await readSince();
      await until(() => now() >= iat);
      expect(await store.witness(jkt, 'a', madeAt(iat))).toBe(true);
      await redis.command(command);
      expect(await reasonOf(store, 'a', iat)).toBe('proof_before_start');
      expect(await store.witness(jkt, 'b', soon())).toBe(true);
    },
  );

  it('the clock of an instance set back by an hour → what was used is refused, also after a loss that it is first to see', async () => {
    const right = await openConnected();
    const wrong = await openConnected({ now: () => Date.now() / 1000 - 3600 });
    const since = await readSince();
    expect(await right.witness(jkt, 'a', madeAt(since))).toBe(true);
    expect(await wrong.witness(jkt, 'a', madeAt(since))).toBe(false);
    await redis.command('FLUSHALL');
    expect(await reasonOf(wrong, 'a', since - 1)).toBe('proof_before_start');
    expect(await readSince()).toBeGreaterThanOrEqual(since);
    expect(await reasonOf(right, 'b', since - 1)).toBe('proof_before_start');
  });

  it('connection lost, the same Redis → nothing is refused, and what was used is known', async () => {
    const changes: string[] = [];
    const store = await openConnected({ onConnection: (state) => changes.push(state) });
    const since = await readSince();
    expect(await store.witness(jkt, 'a', madeAt(since))).toBe(true);
    await redis.command('CLIENT', 'KILL', 'TYPE', 'normal');
    await until(() => changes.length === 3);
    expect([changes, await store.witness(jkt, 'a', madeAt(since))]).toEqual([['up', 'down', 'up'], false]);
    expect([await store.witness(jkt, 'b', madeAt(since)), store.errors]).toEqual([true, 0]);
  });

  it('SCRIPT FLUSH → the script is sent again, and nothing is refused', async () => {
    const store = await openConnected();
    await redis.command('SCRIPT', 'FLUSH');
    expect(await store.witness(jkt, 'a', soon())).toBe(true);
  });

  it('an instance of the previous release next to this one → each sees the proofs of the other', async () => {
    const run = await readRun();
    await redis.command('SET', key, `"${run} ${now() - 100}"`);
    const record = (jti: string): string => `portcullis:jti:${hash('sha256', replayName(jkt, jti), 'base64url')}`;
    // As that release writes a proof that it has accepted.
    await redis.command('SET', record('theirs'), '1', 'PX', '330000', 'NX');
    const store = await openConnected();
    expect(await store.witness(jkt, 'theirs', madeAt(now()))).toBe(false);
    expect(await store.witness(jkt, 'ours', madeAt(now()))).toBe(true);
    // As it asks whether a proof was used.
    expect(await redis.command('SET', record('ours'), '1', 'PX', '330000', 'NX')).toMatch(/^\$-1\r/);
    expect(await redis.command('GET', key)).toContain(run);
  });

  it.each<[string, (run: string) => string, number | undefined]>([
    ['this run, earlier', (run) => `${run} ${now() - 200}`, -200],
    ['this run, ahead as clocks may be', (run) => `${run} ${now() + 20}`, 20],
    ['this run, by a clock that is wrong', (run) => `${run} ${now() + 3600}`, undefined],
    ['another run', (run) => `${run.replace(/./g, 'x')} ${now() - 200}`, undefined],
    ['a longer name of a run', (run) => `${run}0 ${now() - 200}`, undefined],
    ['this run after another', (run) => `x ${run} ${now() - 200}`, undefined],
    ['no time', (run) => `${run} soon`, undefined],
    ['a time and more', (run) => `${run} ${now() - 200}.5`, undefined],
    ['a time of many digits', (run) => `${run} ${'0'.repeat(16)}`, undefined],
    ['nothing', () => '', undefined],
  ])('a fresh store finds %s → proofs are accepted afterwards', async (_name, write, offset) => {
    const before = now();
    const run = await readRun();
    await redis.command('SET', key, `"${write(run)}"`);
    const store = await openConnected();
    const since = await readSince();
    expect((await read(key)).split(' ')[0]).toBe(run);
    expect(since).toBeGreaterThanOrEqual(before + (offset ?? 2));
    expect(since).toBeLessThanOrEqual(now() + (offset ?? 2));
    expect(await reasonOf(store, 'a', since - 1)).toBe('proof_before_start');
    expect(await store.witness(jkt, 'b', madeAt(since))).toBe(true);
  });

  it.each([
    ['INFO is forbidden', ['ACL', 'SETUSER', 'default', '-info'], ['ACL', 'SETUSER', 'default', '+info'], "can't run"],
    ['GET is forbidden', ['ACL', 'SETUSER', 'default', '-get'], ['ACL', 'SETUSER', 'default', '+get'], "can't run"],
    ['SET is forbidden', ['ACL', 'SETUSER', 'default', '-set'], ['ACL', 'SETUSER', 'default', '+set'], "can't run"],
    ['EVAL is forbidden', ['ACL', 'SETUSER', 'default', '-eval'], ['ACL', 'SETUSER', 'default', '+eval'], 'eval'],
  ])('%s → down, reported once, refused; mended → up', async (_name, spoil, mend, message) => {
    const told: string[] = [];
    await redis.command(...spoil);
    const store = await openStore(redis.url, { onConnection: (state, cause) => told.push(`${state} ${cause}`) });
    await until(() => told.length > 0);
    expect([store.connected, await reasonOf(store, 'a', now())]).toEqual([false, 'replay_store_unavailable']);
    await redis.command(...mend);
    await until(() => store.connected);
    expect(told).toEqual([expect.stringContaining('down '), 'up undefined']);
    expect(told[0]).toContain(message);
    expect(await store.witness(jkt, 'a', soon())).toBe(true);
  });

  it('Redis is made a replica under a live connection → down', async () => {
    const changes: string[] = [];
    const store = await openConnected({ onConnection: (state) => changes.push(state) });
    await redis.command('REPLICAOF', '127.0.0.1', String(await findFreePort()));
    expect((await refusal(store.witness(jkt, 'a', soon()))).reason).toBe('replay_store_unavailable');
    expect(changes).toEqual(['up', 'down']);
    await redis.command('REPLICAOF', 'NO', 'ONE');
    await until(() => store.connected);
    expect(await store.witness(jkt, 'b', soon())).toBe(true);
  });
});

describe('a Redis that does not tell', () => {
  const fakeTimers = (): void => {
    vi.useFakeTimers({ shouldAdvanceTime: true, toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
  };

  it('no response → down, reported once, refused; retried on a new connection', async () => {
    const told: string[] = [];
    const impostor = await startImpostor(() => undefined);
    const store = await openStore(impostor.url, { onConnection: (state, cause) => told.push(`${state} ${cause}`) });
    await until(() => impostor.sockets.length === 3);
    expect(store.connected).toBe(false);
    expect((await refusal(store.witness(jkt, 'a', soon()))).reason).toBe('replay_store_unavailable');
    expect(told).toEqual([expect.stringContaining('down ')]);
    expect(told[0]).toContain('did not respond in time');
    expect(impostor.sockets.slice(0, 2).every(({ readyState }) => readyState === 'closed')).toBe(true);
  });

  it('closed during a command → the connection ends, nothing is reported and none follows', async () => {
    fakeTimers();
    const told: string[] = [];
    let asked = 0;
    const impostor = await startImpostor(() => void asked++);
    const store = await openStore(impostor.url, { onConnection: (state) => told.push(state) });
    await until(() => asked > 0);
    store.close();
    await until(() => impostor.sockets[0]?.readyState === 'closed');
    await vi.advanceTimersByTimeAsync(1200);
    await sleep(50);
    expect(impostor.sockets).toHaveLength(1);
    expect(told).toEqual([]);
  });

  it('closed while connecting → the connection ends after it opens', async () => {
    const impostor = await startImpostor(answerCheck);
    const store = await openStore(impostor.url);
    store.close();
    await until(() => impostor.sockets[0]?.readyState === 'closed');
    expect(store.connected).toBe(false);
  });

  it('closed between two attempts → no further one', async () => {
    fakeTimers();
    const told: string[] = [];
    const port = await findFreePort();
    const store = await openStore(`redis://127.0.0.1:${port}`, { onConnection: (state) => told.push(state) });
    await until(() => told.length > 0);
    store.close();
    store.close();
    const impostor = await startImpostor(answerCheck, port);
    await vi.advanceTimersByTimeAsync(1200);
    await sleep(50);
    expect([impostor.sockets, told]).toEqual([[], ['down']]);
  });
});
