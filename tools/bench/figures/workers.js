// One process against two, on both processors, with the load on both as well: the load costs what it costs.

import { load } from '../../load/wrk.js';
import { findFreePort } from '../../shared/network.js';
import { processors } from '../../shared/processes.js';
import { measureOpenssl } from '../openssl.js';
import { startServer } from '../running.js';
import { servers } from '../servers.js';

const both = '0,1';
const rounds = 5;
const seconds = 1;
const warmUpSeconds = 1.5;
/** Accepted share of refused requests: without a processor for 250 ms, the primary causes a 503 in a worker. */
const tolerated = 0.005;
/** DPoP requests a second, more than two workers can serve. */
const pace = 18_000;
/** Connections for each worker. With fewer, each event-loop iteration does less work and costs more per request. */
const connections = 32;

/** µs of processor time of OpenSSL's ES256 check, by how many processes make such checks at the same time. */
async function measureChecks() {
  const check = async (processor) => (await measureOpenssl({ algorithms: ['es256'], processor })).es256;
  const { server, load } = processors;
  const one = await check(server);
  const two = await Promise.all([check(server), check(load)]);
  return { 1: one, 2: (two[0] + two[1]) / 2 };
}

/**
 * Requests a second and processor time by the number of workers: with one token (`rates`, `cpu`), and with new proofs
 * of one key (`dpopRates`, `dpop`). `checks` is the cost of OpenSSL's ES256 check in N processes, because two
 * processors can be threads of one core.
 */
export async function measureWorkers({ scene }) {
  const oneToken = scene.write('workers.txt', `${(await scene.makeBearer(1))[0]}\n`);
  const empty = () => /** @type {Record<string, number[]>} */ ({ 1: [], 2: [] });
  const measured = { rates: empty(), cpu: empty(), dpopRates: empty(), dpop: empty(), checks: empty() };
  for (let round = 0; round < rounds; round++) {
    for (const [count, cost] of Object.entries(await measureChecks())) {
      if (cost > 0) measured.checks[count].push(cost);
    }
    for (const workers of ['1', '2']) {
      const running = await startServer(`workers-${workers}`, servers.portcullis, {
        scene,
        port: await findFreePort(),
        processor: both,
        environment: { WORKERS: workers },
      });
      const proofs = async (name, duration) => {
        const lines = await scene.makeProofs(Math.round(pace * duration), running.url);
        return scene.write(`workers-${name}.txt`, `${lines.join('\n')}\n`);
      };
      const about = { ...running, threads: 1, processor: both, connections: connections * Number(workers) };
      try {
        await load({ ...about, file: oneToken, once: false, seconds: warmUpSeconds });
        const warm = await load({ ...about, file: oneToken, once: false, seconds });
        measured.rates[workers].push(warm.rate);
        measured.cpu[workers].push(warm.cpu);
        await load({ ...about, file: await proofs('warm-up', warmUpSeconds), once: true, seconds: warmUpSeconds });
        const dpop = await load({ ...about, file: await proofs('measured', seconds), once: true, seconds });
        for (const { refused, requests } of [warm, dpop]) {
          if (refused > requests * tolerated) throw new Error(`${refused} of ${requests} requests were refused`);
        }
        measured.dpopRates[workers].push(dpop.rate);
        measured.dpop[workers].push(dpop.cpu);
      } finally {
        await running.stop();
      }
    }
  }
  return measured;
}
