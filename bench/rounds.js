// The rounds: in each, every server starts anew and has each of its workloads once, server by server.
import { measure } from './measure.js';
import { checkServer, copyAnswers, startServer } from './running.js';
import { findFreePort } from './scene.js';
import { servers } from './servers.js';

/**
 * Runs the rounds; `samples[server][workload]` is one measurement a round, `notes` are sentences by server, `failures`
 * the servers that failed or answered otherwise than they must.
 */
export async function runRounds({ scene, pool, names, workloadNames, rounds, seconds, warmUpSeconds, say }) {
  const samples = {};
  const notes = {};
  const failures = new Set();
  const note = (name, text) => {
    notes[name] ??= [];
    if (!notes[name].includes(text)) notes[name].push(text);
  };
  const fail = (name, text) => {
    note(name, text);
    if (!servers[name].optional) failures.add(name);
  };
  const present = names.filter((name) => {
    const missing = servers[name].missing();
    if (missing !== undefined) note(name, `left out: ${missing}`);
    return missing === undefined;
  });
  const ports = Object.fromEntries(await Promise.all(present.map(async (name) => [name, await findFreePort()])));
  const answers = await readAnswers(scene, await findFreePort());
  const told = { ...scene, answers };

  const start = async (name, round) => {
    try {
      const running = await startServer(name, servers[name], { scene: told, port: ports[name] });
      if (round === 0 && servers[name].checks !== 'none') {
        for (const wrong of await checkServer(running, scene)) fail(name, wrong);
      }
      return [name, running];
    } catch (error) {
      fail(name, `did not start: ${error.message}`);
      return undefined;
    }
  };

  for (let round = 0; round < rounds; round++) {
    const running = new Map();
    for (const name of present) {
      const started = await start(name, round);
      if (started !== undefined) running.set(started[0], started[1]);
    }
    for (const workload of workloadNames) {
      for (const name of [...running.keys()].filter((each) => servers[each].workloads.includes(workload))) {
        const about = { name, workload, server: servers[name], running: running.get(name), pool, scene };
        try {
          const sample = await measure({ ...about, seconds, warmUpSeconds });
          samples[name] ??= {};
          samples[name][workload] ??= [];
          samples[name][workload].push(sample);
          say(`round ${round + 1}: ${workload.padEnd(14)} ${name.padEnd(18)} ${Math.round(sample.rate)}/s`);
        } catch (error) {
          fail(name, `${workload}: ${error.message}`);
        }
      }
    }
    await Promise.all([...running.values()].map(({ stop }) => stop()));
  }
  return { samples, notes, failures };
}

/** What the floors answer: the bytes of the service. */
export async function readAnswers(scene, port) {
  const running = await startServer('answers', servers.portcullis, { scene, port });
  try {
    return await copyAnswers(running, scene);
  } finally {
    await running.stop();
  }
}
