// The aims as data: which rounds of a run say how far each is reached. What a row says is in statistics.js.

import { byRound, decide, estimate, isSettled, leastRounds, ratiosOf } from '../shared/statistics.js';

/** @typedef {readonly [server: string, workload: string]} Pair */
/** @typedef {{ readonly least: number } | { readonly most: number }} Aim */

/**
 * One row of the page. Without `aim` it is a limit. `rounds` returns one value for each round.
 *
 * @typedef {object} Row
 * @property {string} name
 * @property {Aim} [aim] omitted for a limit
 * @property {string} command the bench that measures it
 * @property {string} covers what was running
 * @property {readonly Pair[]} pairs what the rounds must have measured
 * @property {number} [within] half the width at which the interval is settled; default: statistics.js
 * @property {number} [digits]
 * @property {(results: any) => readonly number[]} rounds one value a round
 */

const oneWorker = 'one worker on one processor';

/**
 * Ratio of requests in the same processor time, or of processor times the other way round. Without `least` it is a limit.
 *
 * @returns {Row}
 */
export const requests = (name, of, to, /** @type {number | undefined} */ least = undefined, more = {}) => {
  const row = { name, command: 'http', covers: oneWorker, ...(least !== undefined && { aim: { least } }), ...more };
  return {
    ...row,
    pairs: [of, to],
    rounds: (results) => {
      const read = ([server, workload]) => byRound(results[row.command]?.samples[server]?.[workload]);
      return ratiosOf(read(to), read(of));
    },
  };
};

/** A figure of the service by itself, from its own measurement. @returns {Row} */
const figure = (name, most, read, more = {}) => ({
  ...{ name, command: 'http', covers: oneWorker, aim: { most }, pairs: [], digits: 0 },
  rounds: ({ http: run }) => read(run?.figures ?? {}) ?? [],
  ...more,
});

/** A ratio of the gate. @returns {Row} */
const gate = (
  name,
  of,
  to,
  /** @type {number | undefined} */ least = undefined,
  { workload = 'warm', ...more } = /** @type {any} */ ({}),
) => requests(name, [of, workload], [to, workload], least, { command: 'gate', ...more });

/** Ratio of the cost of one rule with one upstream and of N rules with M upstreams. Empty if these were not measured. */
export const rulesRatio = ({ rows }, size, count = 1, when = undefined) => {
  const many = rows.find(
    ({ size: rules, upstreams = 1, condition }) => rules === size && upstreams === count && condition === when,
  );
  return many === undefined ? [] : rows[0].costs.map((cost, round) => cost / many.costs[round]);
};

/** @returns {Row} */
const rules = (name, size, upstreams = 1) => ({
  name,
  command: 'rules',
  covers: 'one process',
  aim: { least: 0.9 },
  pairs: [],
  rounds: (results) => (results.rules === undefined ? [] : rulesRatio(results.rules, size, upstreams)),
});

/** Far from their aims: a wider interval says as much. */
const peer = { within: 0.1, digits: 1 };
const own = (workload) => /** @type {Pair} */ (['portcullis', workload]);

/** @type {readonly Row[]} */
export const aims = [
  requests('warm : open endpoint', own('warm'), own('open'), 0.72),
  requests('cold : floor with one RS256 check', own('cold'), ['cold-floor', 'cold'], 1.15),
  requests('DPoP : floor with one ES256 check', own('dpop'), ['dpop-floor', 'dpop'], 1.1),
  figure('start to listening, provider unreachable, ms', 120, ({ start }) => start?.milliseconds),
  figure("import 'portcullis', ms", 35, (figures) => figures.import?.milliseconds, { covers: 'one process' }),
  figure('idle memory of the service, MiB', 46, ({ memory }) => memory?.idle),
  requests('warm : HAProxy jwt_verify', own('warm'), ['haproxy', 'warm'], 2),
  requests('warm : Express + express-oauth2-jwt-bearer', own('warm'), ['express', 'warm'], 10, peer),
  requests('cold : Express + express-oauth2-jwt-bearer', own('cold'), ['express', 'cold'], 3, peer),
  requests('DPoP : Express + express-oauth2-jwt-bearer', own('dpop'), ['express', 'dpop'], 4, peer),
  requests('warm : Fastify + @fastify/jwt, cache', own('warm'), ['fastify-cache', 'warm'], 5, peer),
  requests('warm : Hono + jose', own('warm'), ['hono-jose', 'warm'], 5, peer),
  requests('cold : Hono + jose', own('cold'), ['hono-jose', 'cold'], 1.25, peer),
  gate('gate, decision next to a proxy : own warm endpoint', 'gate', 'service', 0.8),
  gate('nginx + gate : nginx + raw node:http', 'nginx-gate', 'nginx-raw', 0.66, {
    covers: 'one gate and one nginx worker on one processor',
  }),
  gate('gate as the proxy : raw undici proxy', 'proxy', 'undici', 0.8),
  gate('gate as the proxy : http-proxy-3', 'proxy', 'http-proxy-3', 1),
  rules('gate, 100 rules : 1 rule', 100),
  rules('gate, 10 000 rules : 1 rule', 10_000),
  rules('gate, 10 000 rules and 100 upstreams : 1 rule and 1 upstream', 10_000, 100),
];

/**
 * Ratios without an aim: bounds of the host and of Node, and ratios that no service on Node can raise much.
 *
 * @type {readonly Row[]}
 */
export const limits = [
  requests('warm : raw floor', own('warm'), ['raw-floor', 'warm']),
  requests('warm : raw floor, Node 26', ['portcullis-node26', 'warm'], ['raw-floor-node26', 'warm']),
  requests('malformed : open endpoint', own('malformed'), own('open')),
  gate('raw undici proxy : HAProxy jwt_verify', 'undici', 'haproxy'),
  gate('gate as the proxy, warm : HAProxy jwt_verify', 'proxy', 'haproxy'),
  gate('decision, each token new : sidecar in Go', 'gate', 'go', undefined, { workload: 'cold' }),
  gate('decision, one token : sidecar in Go without a cache', 'gate', 'go'),
  gate('decision, one token : sidecar in Go with a cache', 'gate', 'go-cached'),
  gate('nginx and a decision : nginx and the sidecar in Go without a cache', 'nginx-gate', 'nginx-go'),
  gate('nginx and a decision : nginx and the sidecar in Go with a cache', 'nginx-gate', 'nginx-go-cached'),
];

/**
 * Estimates each row that has rounds, and compares it with its aim.
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
 * Lists the pairs of rows whose interval is still too wide.
 *
 * @param {any} samples
 * @param {readonly Row[]} [rows]
 * @returns {readonly Pair[]}
 */
export function unsettledPairs(samples, rows = aims) {
  const pairs = rows.flatMap((row) => {
    const rounds = row.pairs.length === 0 ? [] : row.rounds({ [row.command]: { samples } });
    // What gave no round before gives none again.
    return rounds.length > 0 && !isSettled(estimate(rounds), row.within) ? row.pairs : [];
  });
  return [...new Map(pairs.map((pair) => [pair.join(' '), pair])).values()];
}
