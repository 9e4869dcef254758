import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@redis/client';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { runScript } from '../../../src/core/dpop/redis-script.ts';
import { createRedisReplayStore } from '../../../src/core/dpop/replay-redis.ts';
import { findFreePort, until } from '../../../tools/shared/network.js';
import { needs } from '../../support/programs.ts';
import { addDocumentedUser, startTestRedis, type TestRedis } from '../../support/redis.ts';
import {
  answerCheck,
  openConnectedStore,
  openStore,
  refusal,
  startImpostor,
  writeAnswer,
} from '../../support/redis-store.ts';

const jkt = 'A'.repeat(43);
/** The last moment of a proof that is made in three seconds: a new Redis asks for nonces until then. */
const soon = () => Date.now() / 1000 + 303;

describe('a replay store in Redis', needs('redis-server'), () => {
  let redis: TestRedis;

  beforeEach(async () => {
    redis = await startTestRedis();
    return redis.stop;
  });

  it('a proof seen first → true, seen again → false', async () => {
    const store = await openConnectedStore(redis.url);
    expect([await store.witness(jkt, 'a', soon()), await store.witness(jkt, 'a', soon())]).toEqual([true, false]);
    expect(await store.witness(jkt, 'b', soon())).toBe(true);
    expect([await store.witness('B'.repeat(43), 'a', soon()), store.errors]).toEqual([true, 0]);
  });

  it('a user with the commands that the documentation names → records', async () => {
    const store = await openConnectedStore(await addDocumentedUser(redis, 'docs/dpop.md', 'portcullis:*'));
    expect([await store.witness(jkt, 'a', soon()), await store.witness(jkt, 'a', soon())]).toEqual([true, false]);
    expect((await redis.command('ACL', 'LOG')).split('\r\n')[0]).toBe('*0');
  });

  it('a thousand at once on one connection → each is first once', async () => {
    const store = await openConnectedStore(redis.url, { timeout: 10 });
    const answers = await Promise.all(
      Array.from({ length: 1000 }, (_, index) => store.witness(jkt, `${index % 500}`, soon())),
    );
    expect(answers.filter(Boolean)).toHaveLength(500);
    expect(answers.slice(0, 500)).not.toContain(false);
  });

  it('a witnessed proof → one key with a hash for its name, kept for its window and a margin', async () => {
    const store = await openConnectedStore(redis.url);
    await store.witness(jkt, 'a', soon());
    const [, key = ''] = /\r\n(portcullis:jti:[\w-]{43})\r\n/.exec(await redis.command('KEYS', '*')) ?? [];
    // Beside the two that say since when.
    expect(await redis.command('DBSIZE')).toMatch(/^:3\r/);
    const [, lifetime] = /^:(\d+)/.exec(await redis.command('PTTL', key)) ?? [];
    expect(Number(lifetime)).toBeGreaterThan(320_000);
    expect(Number(lifetime)).toBeLessThanOrEqual(333_000);
    expect(key).not.toContain(jkt);
  });

  it('another namespace → other records; the same one → the same', async () => {
    const [serve, gate, other] = [
      await openStore(redis.url),
      await openStore(redis.url, { namespace: 'gate' }),
      await openStore(redis.url, { namespace: 'gate' }),
    ];
    await until(() => [serve, gate, other].every(({ connected }) => connected));
    expect([await serve.witness(jkt, 'a', soon()), await gate.witness(jkt, 'a', soon())]).toEqual([true, true]);
    expect(await other.witness(jkt, 'a', soon())).toBe(false);
    expect(await redis.command('KEYS', 'portcullis:gate:jti:*')).toMatch(/^\*1\r/);
  });

  it.each(['', 'a b', 'a:b', 'x'.repeat(65)])('namespace %j → TypeError', (namespace) =>
    expect(createRedisReplayStore(redis.url, { namespace })).rejects.toThrow(/^namespace: write 1 to 64/),
  );

  it('the clock of the instance set back → a proof whose record has ended is refused as late', async () => {
    const setBack = await openConnectedStore(redis.url, { now: () => Date.now() / 1000 - 600 });
    const outcome = await refusal(setBack.witness(jkt, 'a', Date.now() / 1000 - 31));
    expect([outcome.reason, setBack.errors]).toEqual(['proof_too_old', 0]);
  });

  it('sent twice by its client, after a connection was lost → first both times; another attempt → seen', async () => {
    const client = createClient({ url: redis.url });
    client.on('error', () => undefined);
    await client.connect();
    onTestFinished(() => client.destroy());
    const attempt = (name: string) =>
      runScript(client, {
        keys: ['record', 'run', 'generation'],
        arguments: [String(Date.now() + 300_000), String(Date.now()), '7', name],
      });
    expect(await attempt('one')).toMatchObject({ outcome: 'first', generation: 7 });
    expect(await attempt('one')).toMatchObject({ outcome: 'first', generation: 7 });
    expect(await attempt('two')).toMatchObject({ outcome: 'seen', generation: 7 });
  });

  it('Redis killed → refused at once; Redis back → works again', async () => {
    const changes: string[] = [];
    const store = await openConnectedStore(redis.url, { onConnection: (state) => changes.push(state) });
    await redis.kill();
    await until(() => !store.connected);
    const error = await refusal(store.witness(jkt, 'a', soon()));
    expect([error.reason, error.failure.status, store.errors]).toEqual(['replay_store_unavailable', 503, 1]);
    await redis.restart();
    await until(async () => (await store.witness(jkt, 'a', soon())) === true);
    expect(changes).toEqual(['up', 'down', 'up']);
  });

  it('Redis killed with proofs in flight → each is refused, none is queued for later', async () => {
    const store = await openConnectedStore(redis.url, { timeout: 10 });
    redis.freeze();
    const answers = Array.from({ length: 50 }, (_, index) => refusal(store.witness(jkt, `${index}`, soon())));
    await redis.kill();
    for (const { reason } of await Promise.all(answers)) expect(reason).toBe('replay_store_unavailable');
    await redis.restart();
    await until(() => store.connected);
    expect(await redis.command('DBSIZE')).toMatch(/^:2\r/);
  });

  it('Redis frozen → refused after the time-out; thawed → works again', async () => {
    const store = await openConnectedStore(redis.url);
    redis.freeze();
    const errors = await Promise.all(['a', 'b'].map((jti) => refusal(store.witness(jkt, jti, soon()))));
    expect(errors.map(({ reason }) => reason)).toEqual(['replay_store_unavailable', 'replay_store_unavailable']);
    expect(String(errors[0]?.cause)).toBe('LateError: Redis did not respond in time');
    redis.thaw();
    await until(async () => {
      return typeof (await store.witness(jkt, 'c', soon())) === 'boolean';
    });
    expect(await store.witness(jkt, 'c', soon())).toBe(false);
  });

  it('no command for longer than the silence limit → the connection stays', async () => {
    const changes: string[] = [];
    const store = await openConnectedStore(redis.url, { onConnection: (state) => changes.push(state) });
    await redis.command('CONFIG', 'RESETSTAT');
    await until(async () => /cmdstat_ping:calls=3/.test(await redis.command('INFO', 'commandstats')));
    expect([changes, await store.witness(jkt, 'a', soon())]).toEqual([['up'], true]);
  });

  it('Redis frozen while idle → the connection is dropped and opened again', async () => {
    const changes: string[] = [];
    const store = await openConnectedStore(redis.url, { onConnection: (state) => changes.push(state) });
    redis.freeze();
    await until(() => changes.includes('down'));
    redis.thaw();
    await until(() => store.connected);
    expect(await store.witness(jkt, 'a', soon())).toBe(true);
  });

  it('a response that came while this process was busy → counts, however late it is read', async () => {
    const store = await openConnectedStore(redis.url, { timeout: 0.1 });
    const answer = store.witness(jkt, 'a', soon());
    await sleep(1);
    for (const end = Date.now() + 500; Date.now() < end; );
    expect(await answer).toBe(true);
  });

  it.each([
    ['the marker as a list', ['DEL', 'portcullis:run'], ['RPUSH', 'portcullis:run', 'x']],
    ['the marker as a word', ['SET', 'portcullis:run', 'x']],
    ['no marker', ['DEL', 'portcullis:run']],
    ['a generation as a hash', ['DEL', 'portcullis:generation'], ['HSET', 'portcullis:generation', 'x', '1']],
    ['a generation as a word', ['SET', 'portcullis:generation', 'x']],
    ['a generation with a fraction', ['SET', 'portcullis:generation', '1.5']],
    ['a generation of 33 bits', ['SET', 'portcullis:generation', '4294967296']],
    ['no generation', ['DEL', 'portcullis:generation']],
    ['all of it deleted', ['FLUSHALL']],
  ])(
    '%s, by another program → replaced; proofs are recorded, and a new instance opens',
    async (_title, ...commands) => {
      const one = await openConnectedStore(redis.url);
      for (const command of commands) await redis.command(...command);
      const [later, errors] = [soon() + 5, one.errors];
      expect([await one.witness(jkt, 'a', later), await one.witness(jkt, 'a', later)]).toEqual([true, false]);
      const other = await openConnectedStore(redis.url);
      expect([await other.witness(jkt, 'a', later), await other.witness(jkt, 'b', later)]).toEqual([false, true]);
      expect([one.errors - errors, other.generation]).toEqual([0, one.generation]);
    },
  );

  it('the record of a proof as a list, by another program → the proof counts as seen', async () => {
    const store = await openConnectedStore(redis.url);
    await store.witness(jkt, 'a', soon());
    const [, key = ''] = /\r\n(portcullis:jti:[\w-]{43})\r\n/.exec(await redis.command('KEYS', '*')) ?? [];
    await redis.command('DEL', key);
    await redis.command('RPUSH', key, 'x');
    expect(await store.witness(jkt, 'a', soon())).toBe(false);
  });

  it('an error response of Redis → refused', async () => {
    const store = await openConnectedStore(redis.url);
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    expect((await refusal(store.witness(jkt, 'a', soon()))).reason).toBe('replay_store_unavailable');
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    expect(await store.witness(jkt, 'a', soon())).toBe(true);
  });

  it('closed → refused, and the connection is gone', async () => {
    const store = await openConnectedStore(redis.url);
    const [waiting] = [refusal(store.witness(jkt, 'a', soon()))];
    store.close();
    expect((await waiting).reason).toBe('replay_store_unavailable');
    expect((await refusal(store.witness(jkt, 'b', soon()))).reason).toBe('replay_store_unavailable');
    expect(store.connected).toBe(false);
    // What is left is the connection that asks.
    await until(async () => (await redis.command('CLIENT', 'LIST')).split('cmd=').length === 2);
  });
});

describe('a Redis with a password', needs('redis-server'), () => {
  let redis: TestRedis;

  beforeEach(async () => {
    redis = await startTestRedis({ password: 'right-horse' });
    return redis.stop;
  });

  it('a wrong one → down, refused, and reported without the password', async () => {
    const causes: unknown[] = [];
    const store = await openStore(redis.url.replace('right-horse', 'wrong-horse'), {
      onConnection: (_state, cause) => causes.push(cause),
    });
    await until(() => causes.length > 0);
    const error = await refusal(store.witness(jkt, 'a', soon()));
    expect(error.reason).toBe('replay_store_unavailable');
    expect(String(causes[0])).toContain('WRONGPASS');
    for (const each of [error, error.cause, ...causes]) expect(describeError(each)).not.toContain('wrong-horse');
  });
});

describe('a Redis that is not there', () => {
  it('nothing listens → the store opens, is down, and refuses; the generation of nonces is 0', async () => {
    const changes: string[] = [];
    const store = await openStore(`redis://127.0.0.1:${await findFreePort()}`, {
      onConnection: (state) => changes.push(state),
    });
    await until(() => changes.length > 0);
    expect([...changes, store.connected, store.generation]).toEqual(['down', false, 0]);
    const { reason, cause } = await refusal(store.witness(jkt, 'a', soon()));
    expect(reason).toBe('replay_store_unavailable');
    expect(String(cause)).toContain('no connection');
  });

  it('nothing listens → tried again ever later, at most every second, and by chance a little sooner', async () => {
    const setTimer = vi.spyOn(globalThis, 'setTimeout');
    const chance = vi.spyOn(Math, 'random').mockReturnValue(0.5);
    onTestFinished(() => {
      setTimer.mockRestore();
      chance.mockRestore();
    });
    const delays = () => setTimer.mock.calls.filter(([{ name }]) => name === 'connect').map(([, delay]) => delay);
    await openStore(`redis://127.0.0.1:${await findFreePort()}`);
    await until(() => delays().length === 7);
    expect(delays()).toEqual([50, 100, 200, 400, 800, 1000, 1000].map((most) => most * 0.75));
  });

  it('a new connection → sends the commands it needs, and nothing else', async () => {
    const commands: string[] = [];
    const impostor = await startImpostor((words) => {
      if (words[0] !== 'PING') commands.push(words.join(' '));
      return answerCheck(words);
    });
    const store = await openConnectedStore(impostor.url, { now: () => 1_000_000 });
    await refusal(store.witness(jkt, 'a', 1_000_300));
    expect(commands).toEqual([
      expect.stringMatching(
        /^EVALSHA [\da-f]{40} 3 portcullis:run portcullis:run portcullis:generation {2}1000000000 \d+ /,
      ),
      expect.stringMatching(
        /^EVALSHA [\da-f]{40} 3 portcullis:jti:[\w-]{43} portcullis:run portcullis:generation 1000300000 /,
      ),
    ]);
  });

  it('no response any more → late responses open one new connection for all', async () => {
    const changes: string[] = [];
    const impostor = await startImpostor(answerCheck);
    const store = await openConnectedStore(impostor.url, {
      timeout: 0.05,
      onConnection: (state) => changes.push(state),
    });
    await Promise.all(['a', 'b', 'c'].map((jti) => refusal(store.witness(jkt, jti, soon()))));
    await until(() => impostor.sockets.length === 2 && store.connected);
    await refusal(store.witness(jkt, 'd', soon()));
    await until(() => impostor.sockets.length === 3 && store.connected);
    expect(changes).toEqual(['up', 'down', 'up', 'down', 'up']);
  });

  it('a response to one proof and not to another → the other is refused, the connection stays', async () => {
    let proofs = 0;
    const impostor = await startImpostor((words) => {
      if (words[3]?.startsWith('portcullis:jti:') === true) proofs++;
      return answerCheck(words) ?? (proofs === 1 ? writeAnswer('first') : undefined);
    });
    const store = await openConnectedStore(impostor.url, { timeout: 0.2 });
    const [first, second] = [store.witness(jkt, 'a', soon()), refusal(store.witness(jkt, 'b', soon()))];
    expect([await first, (await second).reason, store.connected]).toEqual([true, 'replay_store_unavailable', true]);
    expect(impostor.sockets).toHaveLength(1);
  });

  it('a response to a ping and not to a proof → refused, the connection stays', async () => {
    let pings = 0;
    const impostor = await startImpostor((words) => {
      if (words[0] === 'PING') pings++;
      return answerCheck(words);
    });
    const store = await openStore(impostor.url);
    await until(() => pings === 1);
    const refused = refusal(store.witness(jkt, 'a', soon()));
    impostor.sockets[0]?.write('+PONG\r\n');
    expect(String((await refused).cause)).toContain('LateError');
    expect(store.connected).toBe(true);
  });

  it('a response to a proof → no timer waits for it any more', async () => {
    const impostor = await startImpostor((words) => answerCheck(words) ?? writeAnswer('first'));
    const store = await openConnectedStore(impostor.url, { timeout: 12.34 });
    const setTimer = vi.spyOn(globalThis, 'setTimeout');
    const clearTimer = vi.spyOn(globalThis, 'clearTimeout');
    onTestFinished(() => {
      setTimer.mockRestore();
      clearTimer.mockRestore();
    });
    expect(await store.witness(jkt, 'a', soon())).toBe(true);
    const index = setTimer.mock.calls.findIndex(([, delay]) => delay === 12_340);
    expect(clearTimer).toHaveBeenCalledWith(setTimer.mock.results[index]?.value);
    expect(index).toBeGreaterThan(-1);
  });

  it.each([
    ['no outcome', '*3\r\n$5\r\nmaybe\r\n$1\r\n1\r\n$1\r\n7\r\n'],
    ['no time', '*3\r\n$7\r\nnothing\r\n$1\r\nx\r\n$1\r\n7\r\n'],
    ['a generation that is too large', '*3\r\n$7\r\nnothing\r\n$1\r\n1\r\n$10\r\n4294967296\r\n'],
    ['one word', '+OK\r\n'],
  ])('a response with %s → down', async (_name, answer) => {
    const causes: unknown[] = [];
    const impostor = await startImpostor(() => answer);
    await openStore(impostor.url, { onConnection: (_state, cause) => causes.push(cause) });
    await until(() => causes.length > 0);
    expect(String(causes[0])).toContain('cannot be read');
  });

  it.each([
    ['no URL', 'hunter2'],
    ['sentinels without a name', 'redis+sentinel://:hunter2@localhost'],
    ['sentinels with a bad name', 'redis+sentinel://:hunter2@localhost/%zz'],
    ['a cluster with a name', 'redis+cluster://:hunter2@localhost/name'],
    ['a node without a host', 'redis+cluster://:hunter2@one,'],
    ['a node with port 0', 'redis+cluster://:hunter2@one:0'],
    ['a node with a port beyond all', 'redis+cluster://:hunter2@one:65536'],
    ['another scheme', 'http://:hunter2@localhost'],
    ['a bad port', 'redis://:hunter2@localhost:port'],
    ['a bad database', 'redis://:hunter2@localhost/first'],
    ['a password with a bad escape', 'redis://:hunter2%zz@localhost'],
  ])('%s → TypeError without its text', async (_name, url) => {
    const error: unknown = await createRedisReplayStore(url).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TypeError);
    expect(describeError(error)).toContain('url: write redis://');
    expect(describeError(error)).not.toContain('hunter2');
  });
});

/** All that a log could show of an error. */
function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return `${error.stack} ${JSON.stringify(error)} ${JSON.stringify(Object.entries(error))} ${String(error.cause)}`;
}
