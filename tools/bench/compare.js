// npm run bench -- compare REF: compares the processor time of this build and another commit, round by round.

import { byRound, decide, estimateRatio, leastRounds, median, spread } from '../shared/statistics.js';
import { requests, unsettledPairs } from './aims.js';
import { measureGates } from './gate.js';
import { formatGate } from './gate-report.js';
import { comparedGates } from './gate-servers.js';
import { buildCommit } from './other-build.js';
import { runRounds } from './rounds.js';
import { serviceWords } from './runtimes.js';
import { openScene } from './scene.js';
import { servers } from './servers.js';
import { table } from './table.js';
import { quickWorkloads, workloads } from './workloads.js';

// V8 discards code when the first connections close. Three loads later its code no longer changes.
const full = { most: 20, seconds: 2, warmUpSeconds: 1.5, warmUps: 3, pace: 20_000 };
const quick = { ...full, most: 6 };
/** Formats the verdict of an interval of a ratio. */
const verdicts = { met: 'faster', missed: 'slower', undecided: 'no difference shown' };

/** Prints a table; whether both builds did what they must. */
export async function bench({ ref, quick: isQuick, only = ['service', 'gate'], workload = [], rounds, seconds }) {
  if (ref === undefined) throw new RangeError('With which commit? npm run bench -- compare REF');
  const names = workload.length === 0 ? quickWorkloads : workload;
  const unknown = names.filter((name) => !servers.portcullis.workloads.includes(name));
  if (unknown.length > 0) throw new RangeError(`There is no workload ${unknown.join(', ')}.`);
  const settings = { ...(isQuick ? quick : full), ...(rounds && { most: rounds }), ...(seconds && { seconds }) };
  const other = buildCommit(ref);
  try {
    const done = only.includes('service') ? await compareServices({ other, names, settings }) : true;
    if (!only.includes('gate')) return done;
    const gates = comparedGates(other.folder);
    console.log(`\n${formatGate(await measureGates({ quick: isQuick, rounds, seconds, ...gates }), gates)}\n`);
    return done;
  } finally {
    other.remove();
  }
}

async function compareServices({ other, names, settings }) {
  const scene = await openScene();
  try {
    const compared = {
      here: servers.portcullis,
      there: { ...servers.portcullis, command: () => serviceWords('here', other.folder) },
    };
    const rows = names.map((name) => requests(name, ['here', name], ['there', name]));
    const plan = (round, samples) => {
      if (round === 0) return rows.flatMap(({ pairs }) => pairs);
      return round < settings.most ? unsettledPairs(samples, rows) : [];
    };
    const about = { names: Object.keys(compared), servers: compared, workloadNames: names, plan };
    const { samples, notes, failures } = await runRounds({ scene, ...about, ...settings });
    console.log(`\nProcessor time a request, one worker on one processor: this build and ${other.name}\n`);
    console.log(formatComparison(samples, names));
    for (const [name, list] of Object.entries(notes)) console.log(`\n${name}: ${list.join('; ')}`);
    return failures.size === 0;
  } finally {
    await scene.close();
  }
}

/** One row a workload: what each needs, their ratio, and what its interval says. */
export function formatComparison(samples, names) {
  const rows = names.flatMap((name) => {
    const [here, there] = ['here', 'there'].map((side) => byRound(samples[side]?.[name]));
    const found = estimateRatio(there, here);
    if (found === undefined) return [];
    const [value, low, high] = [found.value, found.low, found.high].map((each) => each.toFixed(3));
    return [
      [
        workloads[name].label,
        ...[here, there].map((each) => median(each.filter((cost) => cost !== undefined)).toFixed(1)),
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
    rows,
  );
}
