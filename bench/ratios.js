// The ratios that the project aims at, as data, and their values: of medians within one run, with the spread over rounds.
export const median = (values) => {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

/** Requests a second of the first, as a multiple of those of the second; each a server and a workload. */
const aims = [
  { name: 'warm : open endpoint', of: ['portcullis', 'warm'], to: ['portcullis', 'open'], aim: 0.93 },
  { name: 'warm : raw floor', of: ['portcullis', 'warm'], to: ['raw-floor', 'warm'], aim: 0.8 },
  {
    name: 'warm : raw floor, both on Node 26',
    of: ['portcullis-node26', 'warm'],
    to: ['raw-floor-node26', 'warm'],
    aim: 0.88,
  },
  { name: 'cold : floor with one RS256 check', of: ['portcullis', 'cold'], to: ['cold-floor', 'cold'], aim: 0.88 },
  { name: 'DPoP : floor with one ES256 check', of: ['portcullis', 'dpop'], to: ['dpop-floor', 'dpop'], aim: 0.85 },
  { name: 'malformed : open endpoint', of: ['portcullis', 'malformed'], to: ['portcullis', 'open'], aim: 0.9 },
  { name: 'warm : Express + express-oauth2-jwt-bearer', of: ['portcullis', 'warm'], to: ['express', 'warm'], aim: 10 },
  { name: 'warm : Fastify + @fastify/jwt, cache', of: ['portcullis', 'warm'], to: ['fastify-cache', 'warm'], aim: 5 },
  { name: 'warm : Hono + jose', of: ['portcullis', 'warm'], to: ['hono-jose', 'warm'], aim: 5 },
  { name: 'warm : HAProxy jwt_verify', of: ['portcullis', 'warm'], to: ['haproxy', 'warm'], aim: 2 },
  { name: 'cold : Express + express-oauth2-jwt-bearer', of: ['portcullis', 'cold'], to: ['express', 'cold'], aim: 3 },
  { name: 'cold : Hono + jose', of: ['portcullis', 'cold'], to: ['hono-jose', 'cold'], aim: 1.25 },
  { name: 'DPoP : Express + express-oauth2-jwt-bearer', of: ['portcullis', 'dpop'], to: ['express', 'dpop'], aim: 4 },
  { name: 'cold on Bun : HAProxy jwt_verify', of: ['portcullis-bun', 'cold'], to: ['haproxy', 'cold'], aim: 1 },
];

/** @type {(samples: any, side: string[], field: string) => number[]} */
const list = (samples, [server, workload], field) => (samples[server]?.[workload] ?? []).map((each) => each[field]);

/**
 * The ratios whose two sides were measured: the value, the least and the most of a round, and whether the aim is met.
 * `byCpu` is the same of requests a second of processor time, which others on the machine disturb less.
 */
export function compare(samples) {
  return aims.flatMap(({ name, of, to, aim }) => {
    const [above, below] = [of, to].map((side) => list(samples, side, 'rate'));
    if (above.length === 0 || below.length === 0) return [];
    const value = median(above) / median(below);
    const each = above.slice(0, below.length).map((rate, round) => rate / below[round]);
    const byCpu = median(list(samples, to, 'cpu')) / median(list(samples, of, 'cpu'));
    return [{ name, value, least: Math.min(...each), most: Math.max(...each), byCpu, aim, isMet: value >= aim }];
  });
}

/** The figures of the service alone that have an aim. */
export function judge({ start, memory }) {
  const rows = [];
  if (start !== undefined) {
    const value = median(start.milliseconds);
    rows.push({ name: 'start without a provider, ms', value, aim: 250, isMet: value <= 250 });
  }
  if (memory !== undefined) {
    const value = memory.mebibytes.million - memory.mebibytes.idle;
    rows.push({ name: 'memory after 1 000 000 tokens above idle, MiB', value, aim: 128, isMet: value <= 128 });
  }
  return rows;
}
