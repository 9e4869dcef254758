// Whether what one client sends ever reaches another one.
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { signCompact } from '../../build/core/jose/sign.js';
import { endChild, processors, startChild } from '../shared/processes.js';
import { chooseSeed, countRequests, libraryProgram, runTarget, targets } from './isolation/run.js';
import { startService } from './service.js';
import { audience, makeEcKey } from './tokens.js';

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
    const world = openWorld(scene);
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

/** Returns the functions for `runTarget`; they start every server with the provider of the scene. */
function openWorld({ bench, provider, setup, issuer }) {
  const { identity, folder } = bench;
  const { kid, privateKey } = setup.ecKey;
  return {
    ...{ issuer, audience, folder },
    certificate: { certFile: identity.certificateFile, keyFile: identity.keyFile },
    jwks: { keys: provider.keys.map(({ jwk }) => jwk) },
    sign: (claims) => signCompact({ alg: 'ES256', typ: 'at+jwt', kid }, claims, { alg: 'ES256', privateKey }),
    async start({ command, args, environment, onLine }) {
      const service = await startService({ provider, identity, environment, words: [command, ...args], onLine });
      return { ports: [service.port], adminUrl: service.adminUrl, stop: service.stop };
    },
    async startLibrary({ argument, onLine }) {
      const running = startChild([process.execPath, libraryProgram, argument], {
        processor: processors.server,
        stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
      });
      createInterface({ input: running.child.stdout }).on('line', onLine);
      const [ports] = await running.orEnd(once(running.child, 'message'), 'the library');
      return { ports: Object.values(ports), stop: () => endChild(running) };
    },
  };
}

/** Rows of isolation. */
export const isolationRows = [markers];
