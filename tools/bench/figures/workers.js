// One process against two, on both processors, with the load on both as well: the load costs what it costs.
import { processors } from '../children.js';
import { load } from '../load.js';
import { measureOpenssl } from '../openssl.js';
import { startServer } from '../running.js';
import { findFreePort } from '../scene.js';
import { servers } from '../servers.js';

const both = '0,1';
const rounds = 5;
const seconds = 1;
const warmUpSeconds = 1.5;
/** Share of calls that may be refused: a worker whose primary has no processor for a quarter of a second answers 503. */
const tolerated = 0.005;
/** More calls with a proof a second than two workers answer. */
const pace = 18_000;
/** Of each worker: a worker that has fewer does less in a turn of its event loop, and each turn costs more. */
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
 * Requests a second and processor time of each, by the number of workers: with a repeated token (`rates`, `cpu`), and with
 * new proofs of one key (`dpopRates`, `dpop`). `checks`: what OpenSSL's own ES256 check costs in so many processes, since
 * two processors that are threads of one core slow each other.
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
