// The rounds: in each, every server starts anew and has each of its workloads once, server by server.

import { findFreePort } from '../shared/network.js';
import { measure } from './measure.js';
import { checkServer, copyAnswers, say, startServer } from './running.js';
import { servers as allServers, upstream } from './servers.js';
import { workloads } from './workloads.js';

/** Maximum number of repeated measurements in a run. */
const mostRepeats = 40;

/** Writes the lines of workloads, except proofs, into files: each is sent to each server once. */
async function fillPool(scene, { names, seconds, warmUpSeconds, pace }) {
  const made = names.filter((name) => workloads[name].lines !== undefined);
  const isOnce = made.some((name) => workloads[name].once);
  const warm = await scene.makeBearer(1);
  const files = Object.fromEntries(made.map((name) => [name, {}]));
  const durations = { warmUp: (warmUpSeconds * 2) / 3, measured: seconds, again: seconds };
  for (const [part, duration] of Object.entries(durations)) {
    const cold = isOnce ? await scene.makeBearer(Math.round(pace * duration)) : [];
    for (const name of made) {
      const lines = workloads[name].lines({ warm, cold });
      files[name][part] = scene.write(`${name}-${part}.txt`, `${lines.join('\n')}\n`);
    }
  }
  return files;
}

/**
 * Runs rounds until `plan` returns no pairs. `plan` gets the samples so far. `samples[server][workload]` is an array of
 * measurements with their `round`; `notes` are sentences by server; `failures` are servers that failed or sent wrong
 * responses.
 *
 * @param {any} about
 */
export async function runRounds({ scene, names, workloadNames, plan, servers = allServers, ...times }) {
  say('making tokens');
  const pool = await fillPool(scene, { names: workloadNames, ...times });
  const samples = {};
  const notes = {};
  const failures = new Set();
  const note = (name, text) => {
    notes[name] ??= [];
    if (notes[name].includes(text)) return;
    notes[name].push(text);
    say(`${name}: ${text}`);
  };
  const fail = (name, text) => {
    note(name, text);
    failures.add(name);
  };
  const keep = (name, workload, sample) => {
    samples[name] ??= {};
    samples[name][workload] ??= [];
    samples[name][workload].push(sample);
  };
  /** The server that another one queries starts before it. */
  const withAsked = (each) => [...new Set(each.flatMap((name) => [servers[name].with ?? [], name].flat()))];
  const present = withAsked(names).filter((name) => {
    const missing = withAsked([name]).flatMap((each) => servers[each].missing() ?? [])[0];
    if (missing !== undefined) note(name, `left out: ${missing}`);
    return missing === undefined;
  });
  const ports = Object.fromEntries(await Promise.all(present.map(async (name) => [name, await findFreePort()])));
  const own = await startServer('answers', allServers.portcullis, { scene, port: await findFreePort() });
  /** The responses of the service, which the floors copy. */
  const answers = await copyAnswers(own, scene);
  await own.stop();
  const urls = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, `http://127.0.0.1:${port}`]));
  const behind = await startServer('behind', upstream, { scene, port: await findFreePort() });
  const told = { ...scene, answers, urls, upstreamUrl: new URL('/', behind.url).origin };

  const start = async (name, round) => {
    try {
      const running = await startServer(name, servers[name], { scene: told, port: ports[name] });
      if (round === 0 && servers[name].checks !== 'none') {
        for (const wrong of await checkServer(running, scene)) fail(name, wrong);
      }
      return running;
    } catch (error) {
      fail(name, `did not start: ${error.message}`);
      return undefined;
    }
  };

  const budget = { repeats: mostRepeats };
  const measurePair = async ([name, workload], running, round) => {
    const asked = running.get(servers[name].with);
    const about = { name, workload, server: servers[name], running: running.get(name), asked, pool, scene, budget };
    try {
      const sample = await measure({ ...about, ...times });
      keep(name, workload, { round, ...sample });
      const { rate, cpu, repeated } = sample;
      const again = repeated > 0 ? `, repeated ${repeated} times` : '';
      say(
        `round ${round + 1}: ${workload.padEnd(14)} ${name.padEnd(18)} ${Math.round(rate)}/s, ${cpu.toFixed(1)} µs${again}`,
      );
    } catch (error) {
      fail(name, `${workload}: ${error.message}`);
    }
  };

  for (let round = 0; ; round++) {
    // What failed once fails again: a round without it is worth as much.
    const wanted = plan(round, samples).filter(([name]) => !failures.has(name));
    const pairs = wanted.filter(([name]) => present.includes(name));
    if (pairs.length === 0) {
      await behind.stop();
      return { samples, notes, failures };
    }
    // Each other round goes backwards, so that no server always comes after the same one.
    if (round % 2 === 1) pairs.reverse();
    const running = new Map();
    for (const name of withAsked(pairs.map(([each]) => each))) {
      const started = await start(name, round);
      if (started !== undefined) running.set(name, started);
    }
    for (const pair of pairs) {
      if (running.has(pair[0])) await measurePair(pair, running, round);
    }
    await Promise.all([...running.values()].map(({ stop }) => stop()));
  }
}
