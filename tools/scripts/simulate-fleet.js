// node tools/scripts/simulate-fleet.js [--instances N] [--only NAME,…] [--json]: the fetches of a fleet at startup, during key rotations
// and while the provider is unreachable. It uses the key sets of the build on a simulated clock, and a simulated
// provider.
import { generateKeyPairSync } from 'node:crypto';
import { parseArgs } from 'node:util';
import { createKeySet } from '../../build/core/keys/key-set.js';
import { makeRandom, quantile } from '../shared/statistics.js';
import { createSimulatedClock } from './simulated-clock.js';

// Half a million fetches fail here, and their stacks are not read.
Error.stackTraceLimit = 0;

const minute = 60;
/** Latency of the provider in seconds, minimum and maximum. */
const latency = { least: 0.02, most: 0.1 };
const issuer = 'https://id.example/';

const makeJwk = (kid) => {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { ...publicKey.export({ format: 'jwk' }), kid, alg: 'ES256', use: 'sig' };
};
const keys = { old: makeJwk('old'), new: makeJwk('new') };

/**
 * @typedef {object} Scenario
 * @property {string} what
 * @property {number} seconds duration
 * @property {number} from second after which fetches are counted
 * @property {number} startWithin seconds over which the starts are spread
 * @property {readonly [from: number, until: number]} [away] the provider is unreachable in this interval
 * @property {number} [signedFrom] second of the first token of the new key
 * @property {number} [publishedFrom] second of the publication of the new key
 */

/** A fleet whose instances were started one after the other, and which has come to rest. */
const rested = { from: 20 * minute, startWithin: 8 * minute };

/** @type {Readonly<Record<string, Scenario>>} */
export const scenarios = {
  calm: { what: 'nothing happens', ...rested, seconds: 90 * minute },
  start: { what: 'all instances start in the same second: the first minute', seconds: minute, from: 0, startWithin: 1 },
  'start-later': {
    what: 'the same: the hour and a half after',
    ...{ seconds: 90 * minute, from: minute, startWithin: 1 },
  },
  rotation: {
    what: 'a new key is published, and signs half an hour later',
    ...{ ...rested, seconds: 70 * minute, publishedFrom: 30 * minute, signedFrom: 60 * minute },
  },
  'rotation-at-once': {
    what: 'a new key is published, and signs at once',
    ...{ ...rested, seconds: 45 * minute, publishedFrom: 30 * minute, signedFrom: 30 * minute },
  },
  'rotation-late': {
    what: 'a new key signs, and is published five minutes later',
    ...{ ...rested, seconds: 45 * minute, publishedFrom: 35 * minute + 3, signedFrom: 30 * minute },
  },
  outage: {
    what: 'the provider is away for half an hour',
    ...{ ...rested, seconds: 75 * minute, away: [30 * minute, 60 * minute] },
  },
  'long-outage': {
    what: 'the provider is away for an hour and a half',
    ...{ ...rested, seconds: 125 * minute, away: [30 * minute, 120 * minute] },
  },
  'start-outage': {
    what: 'all instances start while the provider is away for ten minutes',
    ...{ seconds: 20 * minute, from: 0, startWithin: 1, away: [0, 10 * minute] },
  },
};

/**
 * Runs one scenario. A fetch is one request for the discovery document and one for the keys.
 *
 * @param {Scenario} scenario
 * @param {{ instances: number, tokensPerSecond: number, seed?: number }} fleet new tokens of each instance, a second
 */
export async function simulate(scenario, { instances, tokensPerSecond, seed = 1 }) {
  const { seconds, from, startWithin, away, signedFrom, publishedFrom = Number.POSITIVE_INFINITY } = scenario;
  const random = makeRandom(seed);
  const clock = createSimulatedClock();
  /** Attempts by the second in which they reach the provider. */
  const attempts = new Uint32Array(Math.ceil(seconds) + 1);
  /** Seconds without a usable key, of each instance, in a row. */
  const without = { longest: 0, instances: 0 };
  /** Seconds from the first token of the new key until the key is found, for each instance. */
  const waited = [];
  const wait = (low, high) =>
    new Promise((resolve) => clock.after(low + (high - low) * random(), () => resolve(undefined)));

  async function fetch(url) {
    const time = clock.now();
    if (String(url).endsWith('/openid-configuration')) attempts[Math.floor(time)]++;
    await wait(latency.least, latency.most);
    if (away !== undefined && time >= away[0] && time < away[1]) throw new TypeError('the connection was refused');
    const published = clock.now() >= publishedFrom ? [keys.old, keys.new] : [keys.old];
    const document = String(url).endsWith('/openid-configuration')
      ? { issuer, jwks_uri: `${issuer}jwks.json` }
      : { keys: published };
    const body = Buffer.from(JSON.stringify(document));
    return {
      ...{ status: 200, redirected: false, headers: { get: () => null } },
      body: (async function* read() {
        yield body;
      })(),
    };
  }

  const fleet = Array.from({ length: instances }, () => {
    const options = { issuer, fetch, now: clock.now, random };
    // The built-in client and this replacement share only the used part of fetch.
    const keySet = createKeySet(/** @type {any} */ (options));
    const state = { keySet, hadKeys: false, since: 0, longest: 0, seenAt: 0 };
    clock.after(startWithin * random(), () => void keySet.ready().catch(() => undefined));
    if (signedFrom !== undefined) clock.after(signedFrom, () => meetNewTokens(state));
    return state;
  });

  /** Sends tokens of the new key until the key is found. */
  function meetNewTokens(state) {
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
      const isUsable = state.keySet.usable();
      state.hadKeys ||= isUsable;
      if (isUsable || time < Math.max(from, startWithin)) state.since = time;
      else void state.keySet.refetch();
      state.longest = Math.max(state.longest, time - state.since);
    }
    if (time + 1 <= seconds) clock.after(1, look);
  }
  clock.after(0, look);

  try {
    await clock.runUntil(seconds);
  } finally {
    clock.restore();
    for (const { keySet } of fleet) keySet.close();
  }
  for (const { longest } of fleet) {
    without.longest = Math.max(without.longest, longest);
    if (longest > 0) without.instances++;
  }
  const counted = attempts.subarray(from, seconds);
  const total = counted.reduce((sum, each) => sum + each, 0);
  waited.sort((a, b) => a - b);
  return {
    attempts: total,
    mean: total / counted.length,
    peak: counted.reduce((most, each) => Math.max(most, each), 0),
    secondsWithoutKeys: without.longest,
    instancesWithoutKeys: without.instances,
    ...(waited.length > 0 && {
      judgedAfter: { p50: quantile(waited, 0.5), most: waited.at(-1), instances: waited.length },
    }),
  };
}

/** All scenarios, or those that are named, in their order. */
export async function simulateAll(fleet, only = Object.keys(scenarios)) {
  const found = {};
  for (const [name, scenario] of Object.entries(scenarios).filter(([each]) => only.includes(each))) {
    found[name] = { what: scenario.what, ...(await simulate(scenario, fleet)) };
  }
  return found;
}

if (import.meta.filename === process.argv[1]) {
  const { values } = parseArgs({
    options: {
      instances: { type: 'string', default: '1000' },
      json: { type: 'boolean', default: false },
      only: { type: 'string' },
    },
  });
  const found = await simulateAll(
    { instances: Number(values.instances), tokensPerSecond: 100 },
    values.only?.split(','),
  );
  if (values.json) console.log(JSON.stringify(found));
  else console.table(found);
}
