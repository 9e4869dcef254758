// One measurement: a short warm-up in which each status is counted, then the run whose figures count.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { load } from '../load/wrk.js';
import { residentMemory } from '../shared/processes.js';
import { workloads } from './workloads.js';

/** Accepted share of broken requests: a server may close a kept-alive connection at any time. */
const tolerated = 0.005;

/** Shares of the server's processor from which on others have disturbed a run: other programs, and the host. */
const disturbing = { others: 0.05, stolen: 0.02 };
/** Reports whether other programs used the server's processor in that time. */
export const isDisturbed = ({ others, stolen }) => others > disturbing.others || stolen > disturbing.stolen;

/**
 * Runs one part, and the next one if that was disturbed, as long as there are any and the run may repeat any more. The least disturbed counts; `repeated` is
 * how often it was tried again, `disturbed` whether even this one was.
 */
export async function runUndisturbed(run, parts, budget = { repeats: Number.POSITIVE_INFINITY }) {
  const tried = [];
  for (const part of parts) {
    if (tried.length > 0 && budget.repeats-- <= 0) break;
    tried.push(await run(part));
    if (!isDisturbed(tried.at(-1))) break;
  }
  const loss = ({ others, stolen }) => others + stolen;
  const best = tried.reduce((least, each) => (loss(each) < loss(least) ? each : least));
  return { ...best, repeated: tried.length - 1, disturbed: isDisturbed(best) };
}

/** Returns a function that finds the file of a part: a shared file, or lines for this server. */
function findFile({ name, workload, server, running, pool, scene, seconds, warmUpSeconds }) {
  const { perServer } = workloads[workload];
  const own = (part, text) => scene.write(`${workload}-${name}-${part}.txt`, text);
  const more = Object.entries(server.headers ?? {}).map(([key, value]) => `\t${key}: ${value}`);
  if (perServer === undefined) {
    if (more.length === 0) return async (part) => pool[workload][part];
    return async (part) =>
      own(part, readFileSync(pool[workload][part], 'utf8').replaceAll('\n', `\t${more.join('')}\n`));
  }
  return async (part) => {
    // A proof from the second of the start would get a nonce challenge.
    await sleep(1001 - (Date.now() % 1000));
    const count = Math.round(server.pace * (part === 'warmUp' ? warmUpSeconds : seconds));
    const lines = await perServer(scene, running.url, count);
    return own(part, `${lines.join('\n')}\n`);
  };
}

/** Throws where statuses were not what the workload expects. */
function expectStatuses({ status }, { statuses, requests, refused, broken }) {
  const others = Object.keys(statuses).filter((each) => each !== String(status));
  if (others.length > 0) throw new Error(`got ${JSON.stringify(statuses)} instead of ${status}`);
  if (broken > requests * tolerated) throw new Error(`${broken} of ${requests} requests broke off or took too long`);
  const expected = status === 200 ? 0 : requests;
  if (requests === 0 || refused !== expected)
    throw new Error(`refused ${refused} of ${requests} requests instead of ${expected}`);
}

/** Measures one workload of one server; the figures of `load`, and resident memory afterwards. */
export async function measure(about) {
  const { workload, server, running, asked, seconds, warmUpSeconds, warmUps = 1 } = about;
  const told = workloads[workload];
  const url = new URL(server.path ?? told.path ?? '/api/private', running.url).href;
  const fileOf = findFile(about);
  const pid = [running, ...(asked === undefined ? [] : [asked])].map((each) => each.pid);
  const once = told.once === true;
  const warmUp = { file: await fileOf('warmUp'), seconds: warmUpSeconds, count: true };
  for (let i = 0; i < (once ? 1 : warmUps); i++) expectStatuses(told, await load({ pid, url, once, ...warmUp }));
  const run = async (part) => {
    const measured = await load({ pid, url, file: await fileOf(part), seconds, once });
    expectStatuses(told, measured);
    return measured;
  };
  // Lines that may be sent once cannot be sent again: there is one more file of them.
  const measured = await runUndisturbed(
    run,
    once ? ['measured', 'again'] : ['measured', 'measured', 'measured'],
    about.budget,
  );
  const { rate, p50, p99, cpu, busy, wrk, others, stolen, repeated, disturbed, requests, broken } = measured;
  const figures = { rate, p50, p99, cpu, busy, wrk, others, stolen, repeated, disturbed, requests, broken };
  return { ...figures, memory: residentMemory(running.pid) };
}
