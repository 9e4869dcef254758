// npm run bench -- http: the service, its peers and floors over HTTP, all on one processor, wrk on another.
import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { aims, limits, unsettledPairs } from './aims.js';
import { figures } from './figures.js';
import { installPackages } from './install.js';
import { describeMachine, savePart } from './publish.js';
import { printReport } from './report.js';
import { runRounds } from './rounds.js';
import { say } from './running.js';
import { openScene } from './scene.js';
import { quickServers, servers } from './servers.js';
import { quickWorkloads, workloads } from './workloads.js';

/**
 * At most `most` rounds, none after `minutes`. `pace`: requests a second for which tokens of a cold measurement are
 * signed; a faster server ends early. The compiler settles after up to 80,000 requests, and each round starts the
 * servers again, so the first second is not measured.
 */
const full = { most: 12, minutes: 10, seconds: 0.6, warmUpSeconds: 2, pace: 30_000 };
const quick = { most: 2, minutes: 1, seconds: 0.8, warmUpSeconds: 1, pace: 20_000 };

/** Selects the requested names of `all`, in order. Throws on unknown names. */
function choose(asked, all, kind) {
  const unknown = asked.filter((name) => !all.includes(name));
  if (unknown.length > 0)
    throw new RangeError(`There is no ${kind} ${unknown.join(', ')}. There are: ${all.join(', ')}.`);
  return asked.length === 0 ? all : all.filter((name) => asked.includes(name));
}

function requireTools() {
  const missing = ['wrk', 'taskset'].filter((tool) => {
    try {
      execFileSync('sh', ['-c', `command -v ${tool}`], { stdio: 'ignore' });
      return false;
    } catch {
      return true;
    }
  });
  if (missing.length > 0) throw new Error(`The bench needs ${missing.join(' and ')} (Debian: apt-get install wrk).`);
  if (availableParallelism() < 2) throw new Error('The bench needs two processors: one for the servers, one for wrk.');
}

/**
 * Plans each round: first all chosen pairs, then pairs of aims with too few rounds. A requested number of rounds
 * applies to all pairs.
 */
function makePlan({ names, workloadNames, settings, rounds, startedAt }) {
  const all = names.flatMap((name) =>
    servers[name].workloads.filter((each) => workloadNames.includes(each)).map((each) => [name, each]),
  );
  /** @param {import('./aims.js').Pair} pair */
  const isChosen = ([name, workload]) => all.some((pair) => pair[0] === name && pair[1] === workload);
  const rows = [...aims, ...limits].filter(({ pairs }) => pairs.length > 0 && pairs.every(isChosen));
  return (round, samples) => {
    if (round === 0) return all;
    if (rounds !== undefined) return round < rounds ? all : [];
    const isOver = round >= settings.most || performance.now() - startedAt > settings.minutes * 60_000;
    return isOver ? [] : unsettledPairs(samples, rows);
  };
}

/** Runs and prints; whether every server did what it must. A run of everything is kept with `write`. */
export async function bench({ quick: isQuick, only = [], workload = [], rounds, seconds, write }) {
  requireTools();
  const allServers = isQuick && only.length === 0 ? quickServers : Object.keys(servers);
  const allWorkloads = isQuick ? quickWorkloads : Object.keys(workloads);
  const names = choose(only, allServers, 'server');
  const asked = choose(workload, [...allWorkloads, ...(isQuick ? [] : Object.keys(figures))], 'workload');
  const workloadNames = asked.filter((name) => Object.hasOwn(workloads, name));
  // Figures belong to the service alone, so a run of named servers omits them.
  const figureNames =
    only.length > 0 && workload.length === 0 ? [] : asked.filter((name) => Object.hasOwn(figures, name));
  const isFull = !isQuick && only.length === 0 && workload.length === 0;
  if (workloadNames.length > 0 && names.some((name) => servers[name].own)) installPackages();

  const settings = { ...(isQuick ? quick : full), ...(seconds && { seconds }) };
  const startedAt = performance.now();
  const scene = await openScene();
  try {
    const plan = makePlan({ names, workloadNames, settings, rounds, startedAt: performance.now() });
    const measured =
      workloadNames.length === 0
        ? { samples: {}, notes: {}, failures: new Set() }
        : await runRounds({ scene, names, workloadNames, plan, ...settings });
    const { samples, notes, failures } = measured;
    const more = {};
    for (const name of figureNames) {
      say(name);
      try {
        more[name] = await figures[name](scene);
      } catch (error) {
        // The rest of the run is worth as much without it.
        failures.add(name);
        notes[name] = [error.message];
      }
    }
    const minutes = Math.round((performance.now() - startedAt) / 6000) / 10;
    const run = { ...describeMachine(), settings: { ...settings, minutes }, samples, figures: more, notes };
    printReport({ http: run });
    if (isFull && write) savePart('http', run);
    for (const name of failures) console.error(`failed: ${name}: ${notes[name].join('; ')}`);
    return failures.size === 0;
  } finally {
    await scene.close();
  }
}
