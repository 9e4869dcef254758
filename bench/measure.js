// One measurement: a short warm-up in which each status is counted, then the run whose figures count.
import { residentMemory } from './children.js';
import { load } from './load.js';
import { workloads } from './workloads.js';

/** Connections whose last request is open when a run ends. */
const unfinished = 64;

/** Share of requests that may break off: a server may close a connection that it kept, when it wants. */
const tolerated = 0.005;

/** The files with the lines for a server: those of the pool, or its own where its name stands in them. */
async function findFiles({ name, workload, server, running, pool, scene, seconds, warmUpSeconds }) {
  const { perServer } = workloads[workload];
  if (perServer === undefined) return pool[workload];
  const files = {};
  for (const [part, duration] of Object.entries({ warmUp: warmUpSeconds, measured: seconds })) {
    const lines = await perServer({ scene, url: running.url, count: Math.round(server.pace * duration) });
    files[part] = scene.write(`${workload}-${name}-${part}.txt`, `${lines.join('\n')}\n`);
  }
  return files;
}

/** Throws where statuses were not what the workload expects. */
function expectStatuses({ refused: share }, { statuses, requests, refused, broken }) {
  const allowed = { 0: ['200'], 1: ['401'] }[share] ?? ['200', '401'];
  const others = Object.keys(statuses).filter((status) => !allowed.includes(status));
  if (others.length > 0) throw new Error(`answered ${JSON.stringify(statuses)} instead of ${allowed.join(' and ')}`);
  if (broken > requests * tolerated) throw new Error(`${broken} of ${requests} requests broke off or took too long`);
  const difference = Math.abs(refused - share * requests);
  if (requests === 0 || difference > (Number.isInteger(share) ? 0 : unfinished)) {
    throw new Error(`refused ${refused} of ${requests} requests instead of ${share * 100} %`);
  }
}

/** Measures one workload of one server; the figures of `load`, and resident memory afterwards. */
export async function measure(about) {
  const { workload, running, seconds, warmUpSeconds } = about;
  const told = workloads[workload];
  const url = new URL(told.path ?? '/api/private', running.url).href;
  const files = await findFiles(about);
  const { pid } = running;
  const once = told.once === true;
  expectStatuses(told, await load({ pid, url, file: files.warmUp, seconds: warmUpSeconds, once, count: true }));
  const measured = await load({ pid, url, file: files.measured, seconds, once });
  expectStatuses(told, measured);
  const { rate, p50, p99, cpu, busy, wrk, others, requests, broken } = measured;
  return { rate, p50, p99, cpu, busy, wrk, others, requests, broken, memory: residentMemory(pid) };
}
