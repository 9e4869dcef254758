import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { needs } from '../support/programs.ts';
import { findFreePort, startTestRedis, type TestRedis } from '../support/redis.ts';
import { answerCheck, openStore, refusal, startImpostor, until, writeText } from '../support/redis-store.ts';

const jkt = 'A'.repeat(43);
const key = 'portcullis:run';
/** The last moment of a proof that was made then. */
const madeAt = (iat: number): number => iat + 300;

describe('since when Redis remembers', needs('redis-server'), () => {
  let redis: TestRedis;

  beforeEach(async () => {
    redis = await startTestRedis();
    return redis.stop;
  });

  const readKey = async (): Promise<string> => (await redis.command('GET', key)).split('\r\n')[1] ?? '';
  const readRun = async (): Promise<string> => /run_id:(\w+)/.exec(await redis.command('INFO', 'server'))?.[1] ?? '';

  it('fresh Redis, fresh store → proofs of this second accepted, earlier ones refused and counted', async () => {
    const store = await openStore(redis.url, { now: () => 1_000_000.7 });
    await until(() => store.connected);
    expect(await store.witness(jkt, 'a', madeAt(1_000_000))).toBe(true);
    const error = await refusal(store.witness(jkt, 'b', madeAt(999_999)));
    expect(error.reason).toBe('replay_store_unavailable');
    expect(String(error.cause)).toContain('may have forgotten');
    expect(store.errors).toBe(1);
    expect(await readKey()).toBe(`${await readRun()} 1000000`);
    expect(await redis.command('PTTL', key)).toMatch(/^:-1\r/);
  });

  it('Redis killed and back empty → a used proof refused by all who saw it, and by one who starts now; new ones accepted', async () => {
    let clock = 1_000_000.2;
    const options = { now: () => clock };
    const stores = [await openStore(redis.url, options), await openStore(redis.url, options)];
    await until(() => stores.every(({ connected }) => connected));
    for (const [index, store] of stores.entries())
      expect(await store.witness(jkt, 'a', madeAt(clock))).toBe(index === 0);
    await redis.kill();
    await until(() => stores.every(({ connected }) => !connected));
    await redis.restart();
    await until(() => stores.every(({ connected }) => connected));
    stores.push(await openStore(redis.url, options));
    await until(() => stores.every(({ connected }) => connected));
    for (const iat of [1_000_000, clock, 1_000_001]) {
      for (const store of stores) {
        expect((await refusal(store.witness(jkt, 'a', madeAt(iat)))).reason).toBe('replay_store_unavailable');
      }
    }
    expect(await readKey()).toBe(`${await readRun()} 1000002`);
    clock = 1_000_002;
    for (const [index, store] of stores.entries())
      expect(await store.witness(jkt, 'b', madeAt(clock))).toBe(index === 0);
  });

  it('Redis killed and back empty, nobody left who saw it → a proof used before is refused by who starts after', async () => {
    let clock = 1_000_000.9;
    const options = { now: () => clock };
    const old = await openStore(redis.url, options);
    await until(() => old.connected);
    expect(await old.witness(jkt, 'a', madeAt(1_000_000))).toBe(true);
    old.close();
    await redis.restart();
    clock = 1_000_001.1;
    const young = await openStore(redis.url, options);
    await until(() => young.connected);
    await refusal(young.witness(jkt, 'a', madeAt(1_000_000)));
    expect(await young.witness(jkt, 'b', madeAt(1_000_001))).toBe(true);
  });

  it('connection lost, the same Redis → nothing is refused, and what was used is known', async () => {
    let clock = 1_000_000;
    const changes: string[] = [];
    const store = await openStore(redis.url, { now: () => clock, onConnection: (state) => changes.push(state) });
    await until(() => store.connected);
    expect(await store.witness(jkt, 'a', madeAt(1_000_000))).toBe(true);
    clock = 1_000_010;
    await redis.command('CLIENT', 'KILL', 'TYPE', 'normal');
    await until(() => changes.length === 3);
    expect(changes).toEqual(['up', 'down', 'up']);
    expect(await store.witness(jkt, 'a', madeAt(1_000_000))).toBe(false);
    expect(await store.witness(jkt, 'b', madeAt(1_000_000))).toBe(true);
    expect(store.errors).toBe(0);
  });

  it('connection lost, the same Redis emptied → earlier proofs refused', async () => {
    const changes: string[] = [];
    const store = await openStore(redis.url, { now: () => 1_000_000, onConnection: (state) => changes.push(state) });
    await until(() => store.connected);
    await redis.command('FLUSHALL');
    await redis.command('CLIENT', 'KILL', 'TYPE', 'normal');
    await until(() => changes.length === 3);
    await refusal(store.witness(jkt, 'a', madeAt(1_000_000)));
    expect(await store.witness(jkt, 'a', madeAt(1_000_001))).toBe(true);
  });

  it.each<[string, (run: string) => string, number, number?]>([
    ['this run, earlier', (run) => `${run} 999800`, 999_800],
    ['this run, ahead as clocks may be', (run) => `${run} 1000030`, 1_000_030, 1_000_000],
    ['this run, by a clock that is wrong', (run) => `${run} 1003600`, 1_000_002],
    ['another run', (run) => `${run.replace(/./g, 'x')} 999800`, 1_000_002],
    ['a longer name of a run', (run) => `${run}0 999800`, 1_000_002],
    ['this run after another', (run) => `x ${run} 999800`, 1_000_002],
    ['no time', (run) => `${run} soon`, 1_000_002],
    ['a time and more', (run) => `${run} 999800.5`, 1_000_002],
    ['nothing', () => '', 1_000_002],
  ])('a fresh store finds %s → proofs are accepted from then on', async (_name, write, since, now = 1_000_000.5) => {
    const run = await readRun();
    await redis.command('SET', key, `"${write(run)}"`);
    const store = await openStore(redis.url, { now: () => now });
    await until(() => store.connected);
    expect(await readKey()).toBe(`${run} ${since}`);
    await refusal(store.witness(jkt, 'a', madeAt(since - 1)));
    expect(await store.witness(jkt, 'a', madeAt(since))).toBe(true);
  });

  it.each([
    ['INFO is forbidden', ['ACL', 'SETUSER', 'default', '-info'], ['ACL', 'SETUSER', 'default', '+info'], 'NOPERM'],
    ['GET is forbidden', ['ACL', 'SETUSER', 'default', '-get'], ['ACL', 'SETUSER', 'default', '+get'], 'NOPERM'],
    ['SET is forbidden', ['ACL', 'SETUSER', 'default', '-set'], ['ACL', 'SETUSER', 'default', '+set'], 'NOPERM'],
    ['the key is of another type', ['LPUSH', key, 'x'], ['DEL', key], 'WRONGTYPE'],
  ])('%s → down, told once, refused; mended → up', async (_name, spoil, mend, message) => {
    const told: string[] = [];
    await redis.command(...spoil);
    const store = await openStore(redis.url, { onConnection: (state, cause) => told.push(`${state} ${cause}`) });
    await until(() => told.length > 0);
    expect(store.connected).toBe(false);
    expect((await refusal(store.witness(jkt, 'a', madeAt(Date.now() / 1000)))).reason).toBe('replay_store_unavailable');
    await redis.command(...mend);
    await until(() => store.connected);
    expect(told).toEqual([expect.stringContaining('down '), 'up undefined']);
    expect(told[0]).toContain(message);
    expect(await store.witness(jkt, 'a', madeAt(Date.now() / 1000 + 5))).toBe(true);
  });
});

describe('a Redis that does not tell', () => {
  it.each([
    [
      'no run_id',
      (words: readonly string[]) => (words[0] === 'INFO' ? writeText('# Server') : answerCheck(words)),
      'run_id',
    ],
    ['no answer', () => undefined, 'did not answer in time'],
    [
      'no answer to the last question',
      (words: readonly string[]) => (words[0] === 'SET' ? undefined : answerCheck(words)),
      'did not answer in time',
    ],
  ])('%s → down, told once, refused; asked again on a new connection', async (_name, answer, message) => {
    const told: string[] = [];
    const impostor = await startImpostor(answer);
    const store = await openStore(impostor.url, { onConnection: (state, cause) => told.push(`${state} ${cause}`) });
    await until(() => impostor.sockets.length === 3);
    expect(store.connected).toBe(false);
    expect((await refusal(store.witness(jkt, 'a', madeAt(Date.now() / 1000)))).reason).toBe('replay_store_unavailable');
    expect(told).toEqual([expect.stringContaining('down ')]);
    expect(told[0]).toContain(message);
    expect(impostor.sockets.slice(0, 2).every(({ readyState }) => readyState === 'closed')).toBe(true);
  });

  it('closed while it is asked → the connection ends, nothing is told and none follows', async () => {
    const told: string[] = [];
    let asked = 0;
    const impostor = await startImpostor(() => void asked++);
    const store = await openStore(impostor.url, { onConnection: (state) => told.push(state) });
    await until(() => asked > 0);
    store.close();
    await until(() => impostor.sockets[0]?.readyState === 'closed');
    await sleep(1200);
    expect(impostor.sockets).toHaveLength(1);
    expect(told).toEqual([]);
  });

  it('closed on its way → the connection ends once it is there', async () => {
    const impostor = await startImpostor(answerCheck);
    const store = await openStore(impostor.url);
    store.close();
    await until(() => impostor.sockets[0]?.readyState === 'closed');
    expect(store.connected).toBe(false);
  });

  it('closed between two attempts → no further one', async () => {
    const told: string[] = [];
    const port = await findFreePort();
    const store = await openStore(`redis://127.0.0.1:${port}`, { onConnection: (state) => told.push(state) });
    await until(() => told.length > 0);
    store.close();
    store.close();
    const impostor = await startImpostor(answerCheck, port);
    await sleep(1200);
    expect(impostor.sockets).toEqual([]);
    expect(told).toEqual(['down']);
  });
});
