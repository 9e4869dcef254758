// docs/evidence/scaling.md: what a million decisions a second cost, reckoned from measured figures.
import { estimate, median } from '../shared/statistics.js';
import { decimals, table, thousands } from './table.js';
import { workloads } from './workloads.js';

const million = 1_000_000;
/** Share of a core that is planned for: the rest is for peaks and for an instance that is away. */
const planned = 0.6;
const fleets = [1, 10, 100];
const usesPerToken = [10, 100, 1000];
/** Seconds for which Redis keeps a record: the life of a proof, and the margin for clocks. */
const kept = 330;

/** µs of processor time a decision. */
function costOf(http, server, workload) {
  const list = http.samples[server]?.[workload] ?? [];
  return list.length === 0 ? undefined : median(list.map(({ cpu }) => cpu));
}

/**
 * Signature checks of one token whose requests are spread at random over workers: each worker checks its first and
 * second request, then uses its cache.
 */
export function checksPerToken(uses, workers) {
  const mean = uses / workers;
  const [never, once] = [Math.exp(-mean), mean * Math.exp(-mean)];
  return Math.min(uses, workers * (2 - 2 * never - once));
}

/** Workers that a million decisions a second take, where the share of checks depends on how many there are. */
export function workersFor(uses, { warm, cold }) {
  let workers = 1;
  for (let i = 0; i < 50; i++) {
    const share = checksPerToken(uses, workers) / uses;
    workers = Math.ceil((warm + share * (cold - warm)) / planned);
  }
  return workers;
}

function decisionTable(http) {
  const kinds = ['warm', 'warm-1000', 'mixed', 'cold', 'dpop', 'dpop-keys', 'malformed'];
  const servers = { portcullis: 'Node 20', 'portcullis-node26': 'Node 26' };
  const rows = Object.entries(servers).flatMap(([server, label]) =>
    kinds.flatMap((kind) => {
      const cost = costOf(http, server, kind);
      if (cost === undefined) return [];
      return [
        [`${workloads[kind].label}, ${label}`, decimals(cost, 1), decimals(cost, 0), decimals(cost / planned, 0)],
      ];
    }),
  );
  return table(['a million a second', 'CPU µs each', 'cores, all of each', 'cores, 60 % of each'], rows);
}

function fleetTable({ http, fleet }) {
  const [warm, cold] = ['warm', 'cold'].map((kind) => costOf(http, 'portcullis', kind));
  const memory = http.figures?.memory;
  if (warm === undefined || cold === undefined) return '';
  const costs = { warm, cold };
  const rows = usesPerToken.flatMap((uses) =>
    fleets.map((instances) => {
      const workers = Math.max(instances, workersFor(uses, costs));
      const share = checksPerToken(uses, workers) / uses;
      const each = Math.ceil(workers / instances);
      const mebibytes = memory && instances * ((each > 1 ? median(memory.idle) : 0) + each * memory.mebibytes.many);
      const fetches = fleet && (2 * fleet.outcomes.calm.mean * instances * each) / fleet.instances;
      return [
        `${thousands(uses)} calls with each token, ${instances} ${instances === 1 ? 'instance' : 'instances'}`,
        thousands(million / instances),
        String(each),
        `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`,
        mebibytes === undefined ? '' : decimals(mebibytes / 1024, 1),
        fetches === undefined ? '' : decimals(fetches, fetches < 0.1 ? 4 : 2),
      ];
    }),
  );
  const head = ['calls/s each', 'workers each', 'checked anew', 'memory of all, GiB', 'requests/s to the provider'];
  return table(['Bearer, a million decisions a second', ...head], rows);
}

function redisTable({ cluster }) {
  const { samples, bytes, received, sent, calls } = cluster.stores.cluster;
  const cost = estimate(samples.map(({ redis }) => redis)).value;
  const most = million / cost;
  const row = (name, rate) => [
    name,
    thousands(rate),
    decimals((rate * cost) / million, 2),
    thousands(rate * calls),
    decimals((rate * (received + sent)) / million, 1),
    decimals((rate * kept * bytes) / 2 ** 30, 1),
  ];
  return table(
    ['DPoP: what Redis does', 'proofs/s', 'cores of Redis', 'commands/s', 'MB/s on the network', 'GiB kept'],
    [
      row('one in a hundred of a million calls has a proof', million / 100),
      row('as many as one master can do', most),
      row('every call of a million has one', million),
    ],
  );
}

/** Formats the limits with the figure of each. */
function describeLimits({ http, cluster, fleet }) {
  const cost = estimate(cluster.stores.cluster.samples.map(({ redis }) => redis)).value;
  const [warm, cold, dpop] = ['warm', 'cold', 'dpop'].map((kind) => costOf(http, 'portcullis', kind) ?? Number.NaN);
  const { outcomes } = fleet;
  const workers = workersFor(100, { warm, cold });
  const share = checksPerToken(100, workers) / 100;
  return [
    `1. **DPoP: one master of Redis**, at about ${thousands(million / cost)} proofs a second (${decimals(cost, 1)} µs of one core each). All records of a namespace are in one slot, so more masters do not help: the two others used ${decimals(cluster.others, 2)} µs a proof. Services with their own names (\`REPLAY_NAMESPACE\`) are in other slots. The instances that send so many proofs need ${decimals(dpop / cost, 0)} cores (${decimals(dpop, 0)} µs each).`,
    `2. **Bearer: tokens that each worker checks anew.** With 100 calls a token, spread at random over ${workers} workers, ${decimals(share * 100, 0)} % of the calls come to a worker that does not know the token, and cost ${decimals(cold, 0)} µs instead of ${decimals(warm, 0)}. A balancer that sends the same \`Authorization\` to the same instance reduces that.`,
    `3. **The provider, when a key signs before it is published**: ${thousands(outcomes['rotation-late'].peak)} fetches in one second of ${thousands(fleet.instances)} instances, and ${decimals(outcomes['rotation-late'].mean, 0)} a second on average. A key that is published ahead causes none.`,
    `4. **The stale period, when the provider is away**: after ten minutes and one hour there are no keys. Of an hour and a half, ${thousands(outcomes['long-outage'].secondsWithoutKeys)} s were without. \`KEYS_STALE\` takes up to a day.`,
  ].join('\n');
}

/** The blocks of the page, as far as there are figures for them. */
export function formatScaling(results) {
  const { http, cluster, fleet } = results;
  return {
    ...(http && { 'scaling-decisions': decisionTable(http), 'scaling-fleets': fleetTable(results) }),
    ...(cluster && { 'scaling-redis': redisTable(results) }),
    ...(http && cluster && fleet && { 'scaling-limits': describeLimits(results) }),
  };
}
