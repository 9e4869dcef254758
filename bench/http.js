// npm run bench -- http: the service over HTTP beside its peers and beside floors, all on one processor, wrk on another.
import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { figures } from './figures.js';
import { installPackages } from './install.js';
import { fillPool } from './pool.js';
import { describeMachine, publish } from './publish.js';
import { printReport } from './report.js';
import { runRounds } from './rounds.js';
import { openScene } from './scene.js';
import { quickServers, servers } from './servers.js';
import { quickWorkloads, workloads } from './workloads.js';

/** `pace`: requests a second that the tokens of a cold measurement last for; where a server is faster, it ends early. */
const full = { rounds: 3, seconds: 2, warmUpSeconds: 1, pace: 30_000 };
const quick = { rounds: 2, seconds: 1, warmUpSeconds: 1, pace: 20_000 };

/** Names of `all` that were asked for, in the order of the table; throws on others. */
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

/** Runs, prints, and after a full run writes results, tables and chart; whether every server did what it must. */
export async function bench({ quick: isQuick, only = [], workload = [], rounds, seconds }) {
  requireTools();
  const allServers = isQuick && only.length === 0 ? quickServers : Object.keys(servers);
  const allWorkloads = isQuick ? quickWorkloads : Object.keys(workloads);
  const names = choose(only, allServers, 'server');
  const asked = choose(workload, [...allWorkloads, ...(isQuick ? [] : Object.keys(figures))], 'workload');
  const workloadNames = asked.filter((name) => Object.hasOwn(workloads, name));
  // Figures are of the service alone: whoever asks for one server by name has not asked for them.
  const figureNames =
    only.length > 0 && workload.length === 0 ? [] : asked.filter((name) => Object.hasOwn(figures, name));
  const isFull = !isQuick && only.length === 0 && workload.length === 0;
  if (workloadNames.length > 0 && names.some((name) => servers[name].own)) installPackages();

  const settings = { ...(isQuick ? quick : full), ...(rounds && { rounds }), ...(seconds && { seconds }) };
  const startedAt = performance.now();
  const since = () => `${Math.round((performance.now() - startedAt) / 1000)} s`.padStart(6);
  const say = (text) => process.stderr.write(`${since()}  ${text}\n`);
  const scene = await openScene();
  try {
    say('making tokens');
    const pool = await fillPool(scene, { names: workloadNames, ...settings });
    const measured =
      workloadNames.length === 0
        ? { samples: {}, notes: {}, failures: new Set() }
        : await runRounds({ scene, pool, names, workloadNames, ...settings, say });
    const more = {};
    for (const name of figureNames) {
      say(name);
      more[name] = await figures[name]({ scene, say });
    }
    const { samples, notes, failures } = measured;
    const results = {
      ...describeMachine(),
      settings: { ...settings, minutes: Math.round((performance.now() - startedAt) / 6000) / 10 },
      samples,
      figures: more,
      notes,
    };
    printReport(results);
    if (isFull) publish(results);
    for (const name of failures) console.error(`failed: ${name}: ${notes[name].join('; ')}`);
    return failures.size === 0;
  } finally {
    await scene.close();
  }
}
