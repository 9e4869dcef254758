// npm run bench -- compare REF: compares the processor time of this build and another commit, round by round.

import { byRound, decide, estimate, leastRounds, median, spread } from '../shared/statistics.js';
import { requests, unsettledPairs } from './aims.js';
import { gateServers } from './gate-servers.js';
import { buildCommit } from './other-build.js';
import { runRounds } from './rounds.js';
import { openScene } from './scene.js';
import { servers } from './servers.js';
import { table } from './table.js';
import { quickWorkloads, workloads } from './workloads.js';

// V8 discards code when the first connections close. Three loads later its code no longer changes.
const full = { most: 20, seconds: 2, warmUpSeconds: 1.5, warmUps: 3, pace: 20_000 };
const quick = { ...full, most: 6 };
/** Formats the verdict of an interval of a ratio. */
const verdicts = { met: 'faster', missed: 'slower', undecided: 'no difference shown' };
/** @type {Record<string, any>} */
const here = { ...gateServers, service: servers.portcullis };
/** The gate in each of its roles. */
const roles = ['gate', 'nginx-gate', 'proxy'];

/** The servers of this build and of the build in `build`. */
const bothBuilds = (build) => {
  const there = Object.entries(here).map(([name, server]) => [
    `${name} there`,
    { ...server, build, ...(server.with && { with: `${server.with} there` }) },
  ]);
  return { ...here, ...Object.fromEntries(there) };
};

/** Prints a table; whether both builds did what they must. */
export async function bench({ ref, quick: isQuick, only = ['service', 'gate'], workload = [], rounds, seconds }) {
  if (ref === undefined) throw new RangeError('With which commit? npm run bench -- compare REF');
  const names = workload.length === 0 ? quickWorkloads : workload;
  const unknown = names.filter((name) => !servers.portcullis.workloads.includes(name));
  if (unknown.length > 0) throw new RangeError(`There is no workload ${unknown.join(', ')}.`);
  const settings = { ...(isQuick ? quick : full), ...(rounds && { most: rounds }), ...(seconds && { seconds }) };
  const compared = [
    ...(only.includes('service') ? names.map((name) => [workloads[name].label, 'service', name]) : []),
    ...(only.includes('gate') ? roles.map((name) => [gateServers[name].label, name, 'warm']) : []),
  ];
  const rows = compared.map(([label, name, load]) => requests(label, [name, load], [`${name} there`, load]));
  const plan = (round, samples) => {
    if (round === 0) return rows.flatMap(({ pairs }) => pairs);
    return round < settings.most ? unsettledPairs(samples, rows) : [];
  };
  const other = buildCommit(ref);
  const scene = await openScene();
  try {
    const known = bothBuilds(other.folder);
    const about = {
      servers: known,
      names: [...new Set(plan(0).map(([name]) => name))],
      workloadNames: [...new Set([...names, 'warm'])],
    };
    const { samples, notes, failures } = await runRounds({ scene, ...about, plan, ...settings });
    console.log(`\nProcessor time a request, one worker on one processor: this build and ${other.name}\n`);
    console.log(formatComparison(samples, rows));
    for (const [name, list] of Object.entries(notes)) console.log(`\n${name}: ${list.join('; ')}`);
    return failures.size === 0;
  } finally {
    await scene.close();
    other.remove();
  }
}

/** Formats one row a workload: the cost of each build, their ratio, and the verdict of its interval. */
export function formatComparison(samples, rows) {
  const cells = rows.flatMap(({ name, pairs, rounds }) => {
    const ratios = rounds({ http: { samples } });
    if (ratios.length === 0) return [];
    const found = estimate(ratios);
    const costs = pairs.map(([server, workload]) => median(byRound(samples[server]?.[workload]).filter(Boolean)));
    const [value, low, high] = [found.value, found.low, found.high].map((each) => each.toFixed(3));
    return [
      [
        name,
        ...costs.map((cost) => cost.toFixed(1)),
        value,
        `${low} … ${high}`,
        `± ${(spread(found) * 100).toFixed(1)} %`,
        String(found.rounds),
        found.rounds < leastRounds ? 'undecided: too few rounds' : verdicts[decide(found, { least: 1 })],
      ],
    ];
  });
  return table(
    ['workload', 'here, µs', 'there, µs', 'there : here', '95 % interval', 'half', 'rounds', 'this build is'],
    cells,
  );
}
