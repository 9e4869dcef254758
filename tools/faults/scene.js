// What a row plays in: a provider, the service before it, the load on it, and what is written down meanwhile.
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { holdsWithin } from '../shared/network.js';
import { startProvider } from '../shared/provider.js';
import { startService } from './service.js';
import { makeClaims, mint, mintBound, mintMany, steadyKinds } from './tokens.js';

const sampleMilliseconds = 250;
const settleSeconds = 0.3;
const warmSeconds = { full: 1.5, quick: 0.5 };
const connections = 64;
/** Fetches from the provider (docs/behaviour.md §4). */
const freshSeconds = { least: 60, usual: 600, most: 3600 };
const refreshAhead = 0.8;
const throttleSeconds = 10;
const forcedAtOnce = 3;
const maxBackoffSeconds = 30;
/** Seconds for the first keys; also the longest that the retries wait (docs/behaviour.md §4), and one attempt. */
export const keysSeconds = 33;

/**
 * Opens a scene. `setup`: the number of published keys, `maxAge` of the key set, `environment` of the service, and
 * `providerDown` if the provider is down before the service starts. `words` returns the command line for
 * an issuer, instead of `serve`.
 */
export async function openScene(bench, setup) {
  const {
    countKeys = 1,
    keys = bench.keys.slice(0, countKeys),
    maxAge,
    environment = {},
    providerDown = false,
    words,
  } = setup;
  const { identity, load, quick } = bench;
  const [key] = keys;
  const provider = await startProvider({ identity, keys, maxAge });
  const { issuer } = provider;
  const downs = [];
  let downSince;
  if (providerDown) await breakProvider('down');
  const services = [await startService({ provider, identity, environment, words: words?.(issuer) })];
  if (!providerDown && !(await services[0].awaitLines('keys_fetched', 1, keysSeconds))) {
    throw new Error('the service has found no keys');
  }
  await sleep(settleSeconds * 1000);

  const usual = steadyKinds(key, issuer);
  const streams = new Set();
  const reports = {};
  const notes = [];
  const broken = new Set();
  const samples = [];
  let kinds = [];
  let sampling;
  let faultEndedAt;
  let unanswered = 0;

  async function breakProvider(how) {
    downSince = performance.now();
    if (how === 'down') await provider.down();
    else provider.behave(how);
  }

  const scene = {
    bench,
    /** Figures of the reference before the row; set when the row runs. */
    undisturbed: /** @type {any} */ (undefined),
    load,
    provider,
    issuer,
    key,
    notes,
    broken,
    samples,
    reports,
    services,
    setup,
    usual,
    /** The process that serves now. */
    get service() {
      const last = services.at(-1);
      if (last === undefined) throw new Error('the service was not started');
      return last;
    },
    /** Starts another service with the settings of the row; it serves from here on. */
    async startAnother(more = {}) {
      services.push(
        await startService({ provider, identity, environment: { ...environment, ...more }, words: words?.(issuer) }),
      );
      return scene.service;
    },
    /** Ends a process by SIGTERM. Resolves with the seconds that it took. */
    async terminate(service) {
      const askedAt = performance.now();
      service.signal('SIGTERM');
      const status = await service.ended;
      scene.demand(status === 0, `the exit status was ${status}`);
      return (performance.now() - askedAt) / 1000;
    },
    sleep: (seconds) => sleep(seconds * 1000),
    /** Seconds or numbers: of the full run, or of the quick one. */
    pace: (full, short) => (quick ? short : full),
    mint: (claims, by = key) => mint(by, issuer, claims),
    mintMany: (count, by = key) => mintMany(by, issuer, count),
    mintBound: (holder) => mintBound(key, issuer, holder),
    claims: () => makeClaims(issuer, {}),
    /** Seconds since the first fetch, or up to one more. */
    age: provider.age,
    /** Waits until the first fetch is so many seconds old: it then holds no other back. */
    async ripen(seconds) {
      await sleep(Math.max(0, seconds - scene.age()) * 1000);
    },
    /** Sends a token until the response has this status. Returns false if it does not within the seconds. */
    awaitStatus: (token, status, seconds) =>
      holdsWithin(seconds, async () => (await scene.request('/api/private', token)) === status),
    /** Sends one request. Resolves with the status. */
    async request(path, token) {
      const headers = { connection: 'close', ...(token !== undefined && { authorization: `Bearer ${token}` }) };
      const response = await fetch(`http://127.0.0.1:${scene.service.port}${path}`, { headers });
      await response.body?.cancel();
      return response.status;
    },
    /** Opens a raw connection to the service, whose errors are ignored. */
    connect: (options = {}) =>
      connect({ port: scene.service.port, host: '127.0.0.1', ...options }).on('error', () => {}),
    /** Starts the load that every row has: `share` of the steady rate, and kinds of the row's own. */
    async begin({ share = 1, more = [] } = {}) {
      sampling = setInterval(() => samples.push(scene.service.memory()), sampleMilliseconds);
      kinds = [...usual, ...more];
      const rate = Math.max(1, Math.round(scene.undisturbed.rate * share));
      await scene.send('steady', { rate, connections, kinds });
    },
    /** Sends requests of one kind, which has the name of the stream. */
    sendKind: (stream, { source, expect = [200], upstreamFails = false, ...options }) =>
      scene.send(stream, { kinds: [{ name: stream, weight: 1, expect, upstreamFails, source }], ...options }),
    async send(stream, options) {
      streams.add(stream);
      await load.start(stream, { port: scene.service.port, ...options });
    },
    async stopStream(stream) {
      streams.delete(stream);
      reports[stream] = await load.stop(stream, { slowAbove: scene.undisturbed?.p99 });
      return reports[stream];
    },
    /** Sets if tokens may get 503, while no keys are available. */
    excuse: (yes) =>
      load.expect(
        'steady',
        Object.fromEntries(
          kinds
            .filter(({ name }) => name !== 'public')
            .map(({ name, expect }) => [name, yes ? [...expect, 503] : expect]),
        ),
      ),
    expect: (name, statuses) => load.expect('steady', { [name]: statuses }),
    breakProvider,
    async mendProvider() {
      downs.push((performance.now() - downSince) / 1000);
      downSince = undefined;
      provider.behave('sound');
      if (!provider.listening) await provider.up();
    },
    /** The fault is over: from here on the recovery is timed. */
    faultEnds() {
      faultEndedAt = Date.now();
    },
    note: (text) => notes.push(text),
    /** Writes down what is wrong where the condition is not met. */
    demand(condition, text) {
      if (!condition) broken.add(text);
    },
    /** Counts accepted requests without a response, if the load cannot detect them. */
    unanswered(count) {
      unanswered += count;
    },
    /** Ends the load. Returns the reports by stream and the measurements. */
    async end({ forced, processes = 1 }) {
      await Promise.all([...streams].map(scene.stopStream));
      clearInterval(sampling);
      const age = services.reduce((sum, { age: read }) => sum + read(), 0);
      const lastDown = downSince === undefined ? [] : [(performance.now() - downSince) / 1000];
      return {
        reports,
        unanswered,
        faultEndedAt,
        fetches: Math.max(
          provider.fetches,
          services.reduce((sum, { attempts }) => sum + attempts, 0),
        ),
        fetchBound: fetchBound({ seconds: age, maxAge, forced, downs: [...downs, ...lastDown], processes }),
      };
    },
    async close() {
      clearInterval(sampling);
      // Where the row failed, its load still runs.
      await Promise.all([...streams].map(scene.stopStream));
      await Promise.all(services.map((service) => service.stop()));
      await Promise.all([provider.stop(), setup.stop?.()]);
    },
  };
  samples.push(scene.service.memory());
  if (!providerDown) await warm();
  return scene;

  /** Warms the service up, like the reference. */
  async function warm() {
    await scene.send('warm', { connections, kinds: usual });
    await scene.sleep(scene.pace(warmSeconds.full, warmSeconds.quick));
    await scene.stopStream('warm');
  }
}

/**
 * Returns the maximum number of fetches that docs/behaviour.md allows in N `seconds` after the start: the first fetch,
 * the refreshes, with `forced` three and one in ten seconds for unknown keys, and in each of `downs` (seconds) the
 * retries with the shortest jitter and the one that ends it; for each of N `processes`.
 */
function fetchBound({ seconds, maxAge = freshSeconds.usual, forced, downs, processes }) {
  const lifetime = Math.min(freshSeconds.most, Math.max(freshSeconds.least, maxAge));
  const ahead = Math.floor(seconds / (lifetime * refreshAhead));
  const unknown = forced ? forcedAtOnce + Math.floor(seconds / throttleSeconds) : 0;
  const retries = downs.reduce((sum, down) => sum + countRetries(down) + 1, 0);
  return processes * (1 + ahead + unknown + retries);
}

function countRetries(seconds) {
  let at = 0;
  for (let count = 1; ; count++) {
    at += Math.min(maxBackoffSeconds, 2 ** count) / 2;
    if (at > seconds) return count - 1;
  }
}
