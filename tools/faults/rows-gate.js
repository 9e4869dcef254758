// What is done to the gate while it judges.
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { isLevel, peaks } from './level.js';
import { audience } from './tokens.js';

/** Seconds until a reload must be in force. */
const reloadSeconds = 15;

/** The same decisions as the service makes, and one rule that comes and goes. */
function makeRules(issuer, generation) {
  const comes = { id: 'comes', path: '/comes', access: 'open' };
  return {
    issuers: { staff: { issuer, audience } },
    rules: [
      { id: 'public', path: '/api/public', access: 'open' },
      // Another server in each generation: all that a reload can leave behind is left behind here.
      { id: `scoped-${generation}`, path: '/api/private-scoped', scopes: ['read:messages'] },
      ...(generation % 2 === 0 ? [comes] : []),
    ],
  };
}

const reloads = {
  name: 'gate-reloads',
  title: ({ quick }) => `the gate as the proxy, two workers: ${quick ? 100 : '1 000'} reloads under load`,
  async open({ folder }) {
    const file = join(folder, 'rules.json');
    const upstream = createServer((_incoming, outgoing) => outgoing.end('{}')).listen(0, '127.0.0.1');
    await once(upstream, 'listening');
    const { port } = /** @type {import('node:net').AddressInfo} */ (upstream.address());
    const write = (rules) => {
      writeFileSync(`${file}.new`, JSON.stringify(rules));
      renameSync(`${file}.new`, file);
    };
    return {
      write,
      workers: 2,
      words(issuer) {
        write(makeRules(issuer, 1));
        return ['gate', '--rules', file, '--upstream', `http://127.0.0.1:${port}`];
      },
      async stop() {
        upstream.close();
        upstream.closeAllConnections();
      },
    };
  },
  async play(scene) {
    const { service, setup, issuer } = scene;
    const count = scene.pace(1000, 100);
    await scene.begin({ share: 0.05 });
    let wrong = 0;
    const startedAt = performance.now();
    for (let generation = 2; generation <= count + 1; generation++) {
      setup.write(makeRules(issuer, generation));
      service.signal('SIGHUP');
      const isIn = await awaitGeneration(service, generation);
      scene.demand(isIn, `the rules of generation ${generation} are not in force`);
      if (!isIn) break;
      // From now on the old rules decide nothing, in no worker.
      for (let i = 0; i < 4; i++) {
        const answer = await fetch(`http://127.0.0.1:${service.port}/comes`, { headers: { connection: 'close' } });
        await answer.body?.cancel();
        if (answer.status !== (generation % 2 === 0 ? 200 : 403)) wrong++;
      }
    }
    const seconds = (performance.now() - startedAt) / 1000;
    scene.faultEnds();
    scene.demand(wrong === 0, `${wrong} decisions by rules that were no longer in force`);
    // The short form is over before the heap has found its size.
    if (!scene.bench.quick) scene.demand(isLevel(scene.samples), 'memory still grows at the end');
    const [third, last] = peaks(scene.samples);
    scene.note(
      `${count} reloads in ${seconds.toFixed(0)} s; each was in force in both workers when it was said to be; ` +
        `memory at most ${third.toFixed(0)} MiB in the third quarter, ${last.toFixed(0)} MiB in the last`,
    );
  },
};

async function awaitGeneration(service, generation) {
  for (const end = performance.now() + reloadSeconds * 1000; performance.now() < end; ) {
    if ((await service.count('portcullis_rules_generation')) === generation) return true;
  }
  return false;
}

/** Rows of the gate. */
export const gateRows = [reloads];
