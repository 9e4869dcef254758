// The aims as data: which rounds of a run say how far each is reached. What a row says is in statistics.js.
import { opensslName } from './openssl.js';
import { decide, estimate, isSettled, leastRounds } from './statistics.js';

/** @typedef {readonly [server: string, workload: string]} Pair */
/** @typedef {{ readonly least: number } | { readonly most: number }} Aim */

/**
 * @typedef {object} Row
 * @property {string} name
 * @property {Aim} [aim] none for what is measured to be compared with
 * @property {string} command the bench that measures it
 * @property {string} covers what was running
 * @property {readonly Pair[]} pairs what the rounds must have measured
 * @property {number} [within] half the width at which the interval is settled; without it, that of statistics.js
 * @property {number} [digits]
 * @property {(results: any) => readonly number[]} rounds one value a round
 */

/** One figure of a server and a workload, at the place of its round. */
const column = ({ http }, [server, workload], field = 'cpu') => {
  const values = [];
  for (const sample of http?.samples[server]?.[workload] ?? []) values[sample.round] = sample[field];
  return values;
};

/** One value for each round that all columns have. */
const combine = (columns, value) =>
  Array.from(columns[0], (_, round) => columns.map((each) => each[round]))
    .filter((each) => each.every((one) => one !== undefined))
    .map((each) => value(each));

const oneWorker = 'one worker on one processor';
const http = /** @type {const} */ ({ command: 'http', covers: oneWorker });

/**
 * Requests for the same processor time: those of the first, as a multiple of those of the second.
 *
 * @returns {Row}
 */
const requests = (name, of, to, least, more = {}) => ({
  name,
  ...http,
  aim: { least },
  pairs: [of, to],
  rounds: (results) => combine([column(results, to), column(results, of)], ([below, above]) => below / above),
  ...more,
});

/**
 * Processor time of the first as a multiple of what it cannot go below: the check by itself, and a raw request.
 *
 * @returns {Row}
 */
const cost = (name, of, check, /** @type {number | undefined} */ most = undefined) => {
  const [raw, limit] = /** @type {const} */ ([
    ['raw-floor', 'warm'],
    [opensslName, check],
  ]);
  return {
    name,
    ...http,
    ...(most !== undefined && { aim: { most } }),
    pairs: [of, raw, limit],
    rounds: (results) =>
      combine(
        [of, raw, limit].map((pair) => column(results, pair)),
        ([own, request, signature]) => own / (request + signature),
      ),
  };
};

/**
 * Processor time of the first as a multiple of that of the second.
 *
 * @returns {Row}
 */
const multiple = (name, of, to) => ({
  name,
  ...http,
  pairs: [of, to],
  rounds: (results) => combine([column(results, of), column(results, to)], ([above, below]) => above / below),
});

/**
 * A figure of the service by itself: whatever its own measurement gave.
 *
 * @returns {Row}
 */
const figure = (name, most, rounds, more = {}) => ({ name, ...http, aim: { most }, pairs: [], rounds, ...more });

/**
 * The gate beside something else; `bench -- gate` gives the rounds by the name of the row.
 *
 * @returns {Row}
 */
const gate = (name, key, least, more = {}) => ({
  name,
  command: 'gate',
  covers: oneWorker,
  aim: { least },
  pairs: [],
  rounds: ({ gate }) => gate?.rounds[key] ?? [],
  ...more,
});

/** What one rule costs as a multiple of what so many cost: 1 if they cost the same. */
export const rulesRatio = ({ rows }, size) => {
  const [one, many] = [rows[0], rows.find((each) => each.size === size)].map(({ costs }) => costs);
  return one.map((cost, round) => cost / many[round]);
};

/** @returns {Row} */
const rules = (name, size) => ({
  name,
  command: 'rules',
  covers: 'one process',
  aim: { least: 0.9 },
  pairs: [],
  rounds: (results) => (results.rules === undefined ? [] : rulesRatio(results.rules, size)),
});

/** What two workers or processes take, to what one takes. */
const twoToOne = ({ 1: one = [], 2: two = [] } = {}) => combine([two, one], ([above, below]) => above / below);

/** Far from their aims: a wider interval says as much. */
const peer = { within: 0.1, digits: 1 };
const own = (workload) => /** @type {Pair} */ (['portcullis', workload]);

/** @type {readonly Row[]} */
export const aims = [
  requests('warm : open endpoint', own('warm'), own('open'), 0.93),
  requests('warm : raw floor', own('warm'), ['raw-floor', 'warm'], 0.85),
  requests('warm : raw floor, Node 26', ['portcullis-node26', 'warm'], ['raw-floor-node26', 'warm'], 0.9),
  requests('malformed : open endpoint', own('malformed'), own('open'), 0.92),
  requests('cold : floor with one RS256 check', own('cold'), ['cold-floor', 'cold'], 1.3),
  requests('DPoP : floor with one ES256 check', own('dpop'), ['dpop-floor', 'dpop'], 1.1),
  cost('cost of a new token : OpenSSL’s RS256 check + raw request', own('cold'), 'rs256', 1.3),
  cost('cost of a DPoP call : OpenSSL’s ES256 check + raw request', own('dpop'), 'es256', 1.15),
  requests('DPoP, every key new : one key', own('dpop-keys'), own('dpop'), 0.75),
  figure(
    'cost of a DPoP call, two workers : one worker',
    1.1,
    ({ http: run }) => twoToOne(run?.figures?.workers?.dpop),
    { covers: 'one and two workers on two processors' },
  ),
  figure('start to listening, provider away, ms', 150, ({ http: run }) => run?.figures?.start?.milliseconds ?? [], {
    digits: 0,
  }),
  figure("import 'portcullis', ms", 35, ({ http: run }) => run?.figures?.import?.milliseconds ?? [], {
    digits: 0,
    covers: 'one process',
  }),
  figure('idle memory of the service, MiB', 40, ({ http: run }) => run?.figures?.memory?.idle ?? [], { digits: 0 }),
  requests('Bun, warm : HAProxy jwt_verify', ['portcullis-bun', 'warm'], ['haproxy', 'warm'], 3),
  requests('Bun, cold : HAProxy jwt_verify', ['portcullis-bun', 'cold'], ['haproxy', 'cold'], 1.3),
  requests('warm : HAProxy jwt_verify', own('warm'), ['haproxy', 'warm'], 2),
  requests('warm : Express + express-oauth2-jwt-bearer', own('warm'), ['express', 'warm'], 10, peer),
  requests('cold : Express + express-oauth2-jwt-bearer', own('cold'), ['express', 'cold'], 3, peer),
  requests('DPoP : Express + express-oauth2-jwt-bearer', own('dpop'), ['express', 'dpop'], 4, peer),
  requests('warm : Fastify + @fastify/jwt, cache', own('warm'), ['fastify-cache', 'warm'], 5, peer),
  requests('warm : Hono + jose', own('warm'), ['hono-jose', 'warm'], 5, peer),
  requests('cold : Hono + jose', own('cold'), ['hono-jose', 'cold'], 1.25, peer),
  gate('gate, decision beside a proxy : own warm endpoint', 'decision', 0.9),
  gate('nginx + gate : nginx + raw node:http', 'nginx', 0.9, {
    covers: 'one gate and one nginx worker on one processor',
  }),
  gate('gate as the proxy : raw undici proxy', 'undici', 0.85),
  gate('gate as the proxy : http-proxy-3', 'http-proxy-3', 1),
  gate('gate as the proxy, warm : HAProxy jwt_verify', 'haproxy', 1),
  rules('gate, 100 rules : 1 rule', 100),
  rules('gate, 10 000 rules : 1 rule', 10_000),
];

/**
 * What the machine and Node leave, whatever a service does: a raw server beside the same sums, and two processors beside one.
 *
 * @type {readonly Row[]}
 */
export const limits = [
  multiple('open endpoint, a token sent along : without one', own('open-token'), own('open')),
  {
    name: 'own warm endpoint, sent what a proxy tells a gate : sent nothing of that',
    command: 'gate',
    covers: oneWorker,
    pairs: [],
    rounds: ({ gate: run }) => run?.rounds.told ?? [],
  },
  cost('floor with one RS256 check : OpenSSL’s RS256 check + raw request', ['cold-floor', 'cold'], 'rs256'),
  cost('floor with one ES256 check : OpenSSL’s ES256 check + raw request', ['dpop-floor', 'dpop'], 'es256'),
  multiple(
    'floor with one RS256 check, Bun : HAProxy jwt_verify with new tokens',
    ['cold-floor-bun', 'cold'],
    ['haproxy', 'cold'],
  ),
  multiple(
    'floor that reads a new key and checks a new token and a proof : floor with one ES256 check',
    ['keys-floor', 'dpop-keys'],
    ['dpop-floor', 'dpop'],
  ),
  {
    name: 'OpenSSL’s ES256 check, two processes at once : one process',
    ...http,
    covers: 'no service, two processors',
    pairs: [],
    rounds: ({ http: run }) => twoToOne(run?.figures?.workers?.checks),
  },
  {
    name: 'call with one token, for which workers ask each other nothing, two workers : one worker',
    ...http,
    covers: 'one and two workers on two processors',
    pairs: [],
    rounds: ({ http: run }) => twoToOne(run?.figures?.workers?.cpu),
  },
];

/**
 * What a run says about each aim that it has rounds for.
 *
 * @param {any} results
 */
export function judge(results, rows = aims) {
  return rows.flatMap((row) => {
    const rounds = row.rounds(results);
    if (rounds.length === 0) return [];
    const found = estimate(rounds);
    // Few rounds may agree by chance.
    const { aim } = row;
    const verdict = aim === undefined || found.rounds < leastRounds ? 'undecided' : decide(found, aim);
    return [{ ...row, found, verdict, settled: isSettled(found, row.within) }];
  });
}

/**
 * The pairs that must be measured once more, in the order of the aims: those of rows whose interval is still too wide.
 *
 * @param {any} samples
 * @param {readonly Row[]} [rows]
 * @returns {readonly Pair[]}
 */
export function unsettledPairs(samples, rows = aims) {
  const results = { http: { samples } };
  const pairs = rows
    .filter((row) => {
      if (row.pairs.length === 0) return false;
      const rounds = row.rounds(results);
      // What gave no round before gives none again.
      return rounds.length > 0 && !isSettled(estimate(rounds), row.within);
    })
    .flatMap((row) => row.pairs);
  return [...new Map(pairs.map((pair) => [pair.join(' '), pair])).values()];
}
