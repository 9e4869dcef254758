import { generateKeyPairSync } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import { createKeySet } from '../../../src/core/keys/key-set.ts';
import { makeRandom } from '../../../tools/shared/random.js';
import { quantile } from '../../../tools/shared/statistics.js';

// Thousands of fetches fail here, and their stacks are not read.
Error.stackTraceLimit = 0;

const instances = 20;
const tokensPerSecond = 20;
const minute = 60;
/** Latency of the provider in seconds, minimum and maximum. */
const latency = { least: 0.02, most: 0.1 };
const issuer = 'https://id.example/';

const makeJwk = (kid: string) => {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { ...publicKey.export({ format: 'jwk' }), kid, alg: 'ES256', use: 'sig' };
};
const keys = { old: makeJwk('old'), new: makeJwk('new') };

const { setTimeout: startTimer, clearTimeout: stopTimer } = globalThis;
afterAll(() => void Object.assign(globalThis, { setTimeout: startTimer, clearTimeout: stopTimer }));

/** Creates a clock that advances only on request, and replaces the timers of this process. Times are in seconds. */
function createSimulatedClock() {
  /** The next one last; of two at the same time, the one that was started first. */
  const timers: { at: number; act: () => void; isOff: boolean; unref: () => void }[] = [];
  let time = 0;
  const start = (act: () => void, milliseconds = 0) => {
    const timer = { at: time + milliseconds / 1000, act, isOff: false, unref() {} };
    timers.splice(timers.findLastIndex(({ at }) => at > timer.at) + 1, 0, timer);
    return timer;
  };
  const stop = (timer?: { isOff: boolean }) => {
    if (timer !== undefined) timer.isOff = true;
  };
  Object.assign(globalThis, { setTimeout: start, clearTimeout: stop });
  /** Everything that promises still have to do. */
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return {
    now: () => time,
    /** Calls a function after N seconds. */
    after: (seconds: number, act: () => void) => void start(act, seconds * 1000),
    /** Lets the time pass until then, one timer after the other. */
    async runUntil(end: number) {
      await settle();
      for (let next = timers.at(-1); next !== undefined && next.at <= end; next = timers.at(-1)) {
        time = next.at;
        let hasActed = false;
        while (timers.at(-1)?.at === time) {
          const timer = timers.pop();
          if (timer?.isOff !== false) continue;
          timer.act();
          hasActed = true;
        }
        if (hasActed) await settle();
      }
      time = end;
    },
  };
}

interface Scenario {
  /** Duration. */
  readonly seconds: number;
  /** Second after which fetches are counted. */
  readonly from: number;
  /** Seconds over which the starts are spread. */
  readonly startWithin: number;
  /** The provider is unreachable in this interval. */
  readonly away?: readonly [from: number, until: number];
  /** Second of the first token of the new key. */
  readonly signedFrom?: number;
  /** Second of the publication of the new key. */
  readonly publishedFrom?: number;
}

/** Runs one scenario with the key sets of a fleet. A fetch is one request for the discovery document and one for the keys. */
async function simulate({ seconds, from, startWithin, ...scenario }: Scenario) {
  const { away = [0, 0], signedFrom, publishedFrom = Number.POSITIVE_INFINITY } = scenario;
  const random = makeRandom(1);
  const clock = createSimulatedClock();
  /** Attempts by the second in which they reach the provider. */
  const attempts = new Uint32Array(Math.ceil(seconds) + 1);
  /** Seconds from the first token of the new key until the key is found, for each instance. */
  const waited: number[] = [];

  async function fetch(url: string | URL) {
    const time = clock.now();
    const isDiscovery = String(url).endsWith('/openid-configuration');
    if (isDiscovery) attempts[Math.floor(time)] = (attempts[Math.floor(time)] ?? 0) + 1;
    const wait = latency.least + (latency.most - latency.least) * random();
    await new Promise<void>((resolve) => clock.after(wait, resolve));
    if (time >= away[0] && time < away[1]) throw new TypeError('the connection was refused');
    const published = { keys: clock.now() >= publishedFrom ? [keys.old, keys.new] : [keys.old] };
    return Response.json(isDiscovery ? { issuer, jwks_uri: `${issuer}jwks.json` } : published);
  }

  const fleet = Array.from({ length: instances }, () => {
    const keySet = createKeySet({ issuer, fetch, now: clock.now, random, onEvent() {} });
    const state = { keySet, since: 0, longest: 0, seenAt: 0 };
    clock.after(startWithin * random(), () => void keySet.ready().catch(() => undefined));
    if (signedFrom !== undefined) clock.after(signedFrom, () => meetNewTokens(state));
    return state;
  });

  /** Sends tokens of the new key until the key is found. */
  function meetNewTokens(state: (typeof fleet)[number]) {
    clock.after(-Math.log(1 - random()) / tokensPerSecond, async () => {
      state.seenAt ||= clock.now();
      if (state.keySet.find('new', 'ES256') === undefined) await state.keySet.refetch();
      if (state.keySet.find('new', 'ES256') === undefined) meetNewTokens(state);
      else waited.push(clock.now() - state.seenAt);
    });
  }

  /** Checks each instance once a second. A request without keys starts a fetch. */
  function look() {
    const time = clock.now();
    for (const state of fleet) {
      if (state.keySet.usable() || time < Math.max(from, startWithin)) state.since = time;
      else void state.keySet.refetch();
      state.longest = Math.max(state.longest, time - state.since);
    }
    if (time + 1 <= seconds) clock.after(1, look);
  }
  clock.after(0, look);
  await clock.runUntil(seconds);
  for (const { keySet } of fleet) keySet.close();

  const counted = [...attempts.subarray(from, seconds)];
  waited.sort((a, b) => a - b);
  return {
    mean: counted.reduce((sum, each) => sum + each, 0) / counted.length,
    peak: Math.max(...counted),
    secondsWithoutKeys: Math.max(...fleet.map(({ longest }) => longest)),
    instancesWithoutKeys: fleet.filter(({ longest }) => longest > 0).length,
    ...(waited.length > 0 && {
      judgedAfter: { p50: quantile(waited, 0.5), most: waited.at(-1), instances: waited.length },
    }),
  };
}

/** A fleet whose instances were started one after the other, and which has come to rest. */
const rested = { from: 20 * minute, startWithin: 8 * minute };
const rotated = { ...rested, seconds: 45 * minute, signedFrom: 30 * minute };
const outage = { ...rested, seconds: 75 * minute, away: [30 * minute, 60 * minute] } as const;
const longOutage = { ...rested, seconds: 125 * minute, away: [30 * minute, 120 * minute] } as const;

describe(`a fleet of ${instances} on a simulated clock`, () => {
  it('nothing happens → each instance fetches about once in 450 s, and always has keys', async () => {
    const { mean, secondsWithoutKeys } = await simulate({ ...rested, seconds: 90 * minute });
    expect(instances / mean).toBeGreaterThan(430);
    expect(instances / mean).toBeLessThan(470);
    expect(secondsWithoutKeys).toBe(0);
  });

  it('all start in the same second → they fetch together once, and spread with the first refresh', async () => {
    expect((await simulate({ seconds: minute, from: 0, startWithin: 1 })).peak).toBe(instances);
    const later = await simulate({ seconds: 90 * minute, from: minute, startWithin: 1 });
    expect(later.peak).toBeLessThan(instances / 4);
  });

  it('a key that is published ahead → no instance waits for it or fetches more often', async () => {
    const ahead = { seconds: 70 * minute, publishedFrom: 30 * minute, signedFrom: 60 * minute };
    const { judgedAfter, peak } = await simulate({ ...rested, ...ahead });
    expect(judgedAfter).toEqual({ p50: 0, most: 0, instances });
    expect(peak).toBeLessThan(instances / 4);
  });

  it('a key that signs immediately → every instance fetches once more, and has the key after that fetch', async () => {
    const { judgedAfter, peak } = await simulate({ ...rotated, publishedFrom: 30 * minute });
    expect(peak).toBeGreaterThan(instances * 0.8);
    expect(peak).toBeLessThanOrEqual(instances + 1);
    expect(judgedAfter?.instances).toBe(instances);
    expect(judgedAfter?.most).toBeLessThan(1);
  });

  it('a key that is published late → at most three immediate fetches of each instance, and found within 10 s', async () => {
    const { judgedAfter, peak } = await simulate({ ...rotated, publishedFrom: 35 * minute + 3 });
    expect(peak).toBeLessThanOrEqual(3 * instances + 1);
    expect(judgedAfter?.instances).toBe(instances);
    expect(judgedAfter?.most).toBeLessThan(303 + 11);
  });

  it('the provider is unreachable for less than the stale period → no instance is without keys', async () => {
    const { peak, ...found } = await simulate(outage);
    expect(found).toMatchObject({ secondsWithoutKeys: 0, instancesWithoutKeys: 0 });
    expect(peak).toBeLessThan(instances / 3);
  });

  it('the provider is away for longer → all are without keys, at most until one backoff after it is back', async () => {
    const { secondsWithoutKeys, instancesWithoutKeys, peak } = await simulate(longOutage);
    expect(instancesWithoutKeys).toBe(instances);
    // 90 minutes, less the stale hour and what was left of ten fresh minutes.
    expect(secondsWithoutKeys).toBeGreaterThan(20 * 60);
    expect(secondsWithoutKeys).toBeLessThan(30 * 60 + 31);
    expect(peak).toBeLessThan(instances / 3);
  });
});
