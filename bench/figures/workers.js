// One process against two, on both processors, with the load on both as well: the load costs what it costs.
import { load } from '../load.js';
import { startServer } from '../running.js';
import { findFreePort } from '../scene.js';
import { servers } from '../servers.js';

const both = '0,1';
const rounds = 3;
const seconds = 3;

/** Requests a second with a repeated token, by the number of workers. */
export async function measureWorkers({ scene }) {
  const file = scene.write('workers.txt', `${(await scene.makeBearer(1))[0]}\n`);
  const rates = { 1: [], 2: [] };
  for (let round = 0; round < rounds; round++) {
    for (const workers of Object.keys(rates)) {
      const running = await startServer(`workers-${workers}`, servers.portcullis, {
        scene,
        port: await findFreePort(),
        processor: both,
        environment: { WORKERS: workers },
      });
      try {
        const about = { ...running, file, once: false, threads: 2, processor: both };
        await load({ ...about, seconds: 1 });
        rates[workers].push((await load({ ...about, seconds })).rate);
      } finally {
        await running.stop();
      }
    }
  }
  return { rates };
}
