// npm run bench -- http, gate: the service, its peers and floors, and the gate next to nginx and as a proxy, each compared with
// the same setup without checks; all servers on one processor, wrk on another.
import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { aims, limits, unsettledPairs } from './aims.js';
import { figures } from './figures.js';
import { gateServers } from './gate-servers.js';
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
const sets = {
  http: {
    servers,
    workloads,
    figures,
    full: { most: 12, minutes: 10, seconds: 0.6, warmUpSeconds: 2, pace: 30_000 },
    short: { most: 2, minutes: 1, seconds: 0.8, warmUpSeconds: 1, pace: 20_000 },
    quick: { servers: quickServers, workloads: quickWorkloads },
  },
  gate: {
    servers: gateServers,
    workloads: { warm: workloads.warm, cold: workloads.cold },
    figures: {},
    full: { most: 12, minutes: 8, seconds: 0.8, warmUpSeconds: 1.5, warmUps: 3, pace: 15_000 },
    short: { most: 2, minutes: 4, seconds: 0.8, warmUpSeconds: 1.5, warmUps: 3, pace: 15_000 },
    quick: { servers: Object.keys(gateServers), workloads: ['warm', 'cold'] },
  },
};

/** Selects the requested names of `all`, in order. Throws on unknown names. */
function choose(asked, all, kind) {
  const unknown = asked.filter((name) => !all.includes(name));
  if (unknown.length > 0)
    throw new RangeError(`There is no ${kind} ${unknown.join(', ')}. There are: ${all.join(', ')}.`);
  return asked.length === 0 ? all : all.filter((name) => asked.includes(name));
}

function requireTools() {
  const missing = ['wrk', 'taskset'].filter((tool) => spawnSync(tool, ['--version']).error !== undefined);
  if (missing.length > 0) throw new Error(`The bench needs ${missing.join(' and ')} (Debian: apt-get install wrk).`);
  if (availableParallelism() < 2) throw new Error('The bench needs two processors: one for the servers, one for wrk.');
}

/**
 * Plans each round: first all chosen pairs, then pairs of aims with too few rounds. A requested number of rounds
 * applies to all pairs.
 */
function makePlan({ servers: known, names, workloadNames, settings, rounds }) {
  const startedAt = performance.now();
  const all = names.flatMap((name) =>
    known[name].workloads.filter((each) => workloadNames.includes(each)).map((each) => [name, each]),
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
const runSet = async (set, { quick: isQuick, only = [], workload = [], rounds, seconds, write }) => {
  requireTools();
  const { servers: known, figures: alone, full, short, quick } = sets[set];
  const names = choose(only, isQuick && only.length === 0 ? quick.servers : Object.keys(known), 'server');
  const all = isQuick ? quick.workloads : [...Object.keys(sets[set].workloads), ...Object.keys(alone)];
  const asked = choose(workload, all, 'workload');
  const workloadNames = asked.filter((name) => Object.hasOwn(workloads, name));
  // Figures belong to the service alone, so a run of named servers omits them.
  const figureNames =
    only.length > 0 && workload.length === 0 ? [] : asked.filter((name) => Object.hasOwn(alone, name));
  const isFull = !isQuick && only.length === 0 && workload.length === 0;
  if (workloadNames.length > 0 && names.some((name) => known[name].own)) installPackages();

  const settings = { ...(isQuick ? short : full), ...(seconds && { seconds }) };
  const startedAt = performance.now();
  const scene = await openScene();
  try {
    const plan = makePlan({ servers: known, names, workloadNames, settings, rounds });
    const measured =
      workloadNames.length === 0
        ? { samples: {}, notes: {}, failures: new Set() }
        : await runRounds({ scene, servers: known, names, workloadNames, plan, ...settings });
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
    printReport({ [set]: run });
    if (isFull && write) savePart(set, run);
    for (const name of failures) console.error(`failed: ${name}: ${notes[name].join('; ')}`);
    return failures.size === 0;
  } finally {
    await scene.close();
  }
};

export const benchHttp = (options) => runSet('http', options);
export const benchGate = (options) => runSet('gate', options);
