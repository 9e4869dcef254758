// Whether what one client sends ever reaches another one.
import { processors } from '../shared/processes.js';
import { chooseSeed, countRequests, runTarget, targets } from './isolation/run.js';
import { makeEcKey } from './tokens.js';

const markers = {
  name: 'markers',
  title: ({ quick }) => `${quick ? '100 000' : '200 000'} requests, with a marker for each connection and random cuts`,
  open(bench) {
    const ecKey = makeEcKey('ec-key');
    return { ecKey, keys: [bench.keys[0], ecKey] };
  },
  // Each service before the provider fetches its keys.
  processes: 1 + targets.filter(({ command }) => command !== 'library').length,
  async play(scene) {
    const requests = scene.pace(200_000, 100_000);
    const seed = chooseSeed();
    const { provider, bench, setup } = scene;
    const world = { ...bench, provider, key: setup.ecKey, processor: processors.server };
    await scene.begin({ share: 0.02 });
    const total = { requests: 0, writes: 0, tunnels: 0, lines: 0 };
    let first = 1;
    for (const target of targets) {
      const part = { requests: countRequests(target, requests), seed, first };
      const { counts, defects, next } = await runTarget(target, world, part);
      for (const name of Object.keys(total)) total[name] += counts[name];
      first = next;
      for (const defect of defects)
        scene.demand(false, `${target.name}, seed ${seed}: ${defect.replaceAll('\n', ' ')}`);
    }
    scene.demand(total.requests >= requests, `only ${total.requests} requests were sent`);
    scene.note(
      `${total.requests} requests of ${first - 1} connections in ${total.writes} writes (seed ${seed}), to serve, the gate ` +
        `and the adapters, with TLS; ${total.tunnels} tunnels and ${total.lines} log lines compared`,
    );
  },
};

/** Rows of isolation. */
export const isolationRows = [markers];
