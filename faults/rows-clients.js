// What many clients do at once.
import { limitConnections, startCrowd } from './crowd.js';
import { makeEcKey } from './tokens.js';

const path = '/api/private';
/**
 * Headers must be there after 10 s (contract §8). On a busy machine a connection may wait about as long in the queue of the
 * listener, and that twice, before the service sees it: it is the one that never ends that is looked for.
 */
const slowSeconds = 60;

/** Tokens that no cache has seen. */
export const distinct = {
  name: 'distinct-tokens',
  open: (bench) => {
    const ecKey = makeEcKey('ec-key');
    return { ecKey, keys: [bench.keys[0], ecKey], environment: { ALGORITHMS: 'RS256,ES256' } };
  },
  setup: {},
  title: ({ quick }) => `${quick ? '50 000' : '1 000 000'} distinct tokens`,
  async play(scene) {
    const { ecKey } = scene.setup;
    const limit = scene.pace(1_000_000, 50_000);
    // Beside the tokens, which come as fast as they are answered, little of the steady load has room.
    await scene.begin({ share: 0.1 });
    const source = { type: 'minted', path, pem: ecKey.pem, kid: ecKey.kid, claims: scene.claims() };
    await scene.send('distinct', {
      connections: 48,
      limit,
      kinds: [
        { name: 'distinct good', weight: 1, expect: [200], source },
        { name: 'distinct bad', weight: 9, expect: [401], source: { type: 'forged', path, token: scene.mint() } },
      ],
    });
    for (let left = scene.pace(600, 8); left > 0 && !(await scene.load.state('distinct')).done; left--) {
      await scene.sleep(1);
    }
    const { sent } = await scene.stopStream('distinct');
    scene.faultEnds();
    await scene.sleep(1);
    // A plateau: the last quarter is not above the third but for what a garbage collection leaves.
    const quarter = Math.floor(scene.samples.length / 4);
    const [third, last] = [2, 3].map((index) =>
      Math.max(...scene.samples.slice(quarter * index, quarter * (index + 1))),
    );
    scene.demand(quarter < 4 || last < third * 1.1 + 16, 'memory still grows at the end');
    scene.note(`${sent} tokens, one in ten good (ES256), the others RS256 under signatures that are wrong`);
    if (sent < limit) scene.note('this machine had no time for more');
  },
};

/** Clients that take their time over the headers of one request. */
export const slow = {
  name: 'slow-clients',
  setup: {},
  title: ({ quick }) => `${quick ? '1 000' : '5 000'} slow clients`,
  async play(scene) {
    const count = limitConnections(scene.pace(5000, 1000));
    const crowd = startCrowd();
    try {
      await scene.begin();
      const { opened } = await crowd.open({ port: scene.service.port, count, style: 'slow' });
      scene.demand(opened === count, `only ${opened} of ${count} could connect`);
      let state = await crowd.state();
      for (let seconds = 0; state.open > 0 && seconds < slowSeconds; seconds++) {
        await scene.sleep(1);
        state = await crowd.state();
      }
      scene.faultEnds();
      scene.demand(state.open === 0, `${state.open} slow clients were still connected ${slowSeconds} s later`);
      scene.note(`${count} clients, a byte a second; cut off after 10 s, ${state.statuses[408] ?? 0} of them with 408`);
      await scene.sleep(1);
    } finally {
      await crowd.end();
    }
  },
};

/** Clients that keep their connections open and send nothing. */
export const idle = {
  name: 'idle-connections',
  setup: { environment: { KEEP_ALIVE: '120' } },
  title: ({ quick }) => `${quick ? '2 000' : '10 000'} idle connections`,
  async play(scene) {
    const count = limitConnections(scene.pace(10_000, 2000));
    const crowd = startCrowd();
    try {
      await scene.begin();
      await crowd.open({ port: scene.service.port, count, style: 'idle' });
      await scene.sleep(scene.pace(5, 2));
      const { open, statuses } = await crowd.state();
      scene.demand(open === count && statuses[200] === count, `${open} of ${count} connections were open and served`);
      scene.note(`${count} connections, kept alive after one answer each`);
    } finally {
      await crowd.end();
    }
  },
};
