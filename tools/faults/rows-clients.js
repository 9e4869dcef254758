// What many clients do at once.
import { limitConnections, withCrowd } from '../load/crowd.js';
import { isLevel } from './level.js';
import { makeEcKey } from './tokens.js';

const path = '/api/private';
/**
 * Headers must be complete after 10 s (docs/behaviour.md §8). On a busy host a connection can wait as long in the queue
 * of the listener, twice, before the service accepts it; the test searches for a connection that never ends.
 */
const slowSeconds = 60;
/** Parts of a head, in KiB: none, nearly the limit that was before, nearly the limit, and the same in lines of four bytes. */
const parts = [{ part: 0 }, { part: 15 }, { part: 31 }, { part: 31, line: 'ab:\r\n' }];
/** KiB that a connection may cost: its own objects and the parsed begin of a head, and the head twice, when it is read and kept. */
const maxPerConnection = (part) => 48 + 2 * part;
/** For the distinct tokens, however late it is. */
const leastSeconds = 10;

/** Tokens that no cache has seen. */
export const distinct = {
  name: 'distinct-tokens',
  open: (bench) => {
    const ecKey = makeEcKey('ec-key');
    return { ecKey, keys: [bench.keys[0], ecKey], environment: { ALGORITHMS: 'RS256,ES256' } };
  },
  title: ({ quick }) => `${quick ? '20 000' : '1 000 000'} distinct tokens`,
  async play(scene) {
    const { ecKey } = scene.setup;
    const limit = scene.pace(1_000_000, 20_000);
    // Tokens are sent at full rate, so only a small part of the constant load fits.
    await scene.begin({ share: 0.1 });
    const source = { type: 'minted', path, pem: ecKey.pem, kid: ecKey.kid, claims: scene.claims() };
    await scene.sendKind('distinct', { source, limit, connections: 48 });
    const seconds = Math.max(leastSeconds, scene.bench.secondsLeft());
    for (const end = performance.now() + seconds * 1000; performance.now() < end; await scene.sleep(0.5)) {
      if ((await scene.load.state('distinct')).done) break;
    }
    const { sent } = await scene.stopStream('distinct');
    scene.faultEnds();
    await scene.sleep(1);
    // The short form is over before the heap has found its size.
    if (!scene.bench.quick) scene.demand(isLevel(scene.samples), 'memory still grows at the end');
    scene.note(`${sent} tokens, all good (ES256)`);
    if (sent < limit) scene.note('this machine had no time for more');
  },
};

/** Clients that take their time over the headers of one request. */
export const slow = {
  name: 'slow-clients',
  title: ({ quick }) => `${quick ? '1 000' : '5 000'} slow clients`,
  async play(scene) {
    const count = limitConnections(scene.pace(5000, 1000));
    await withCrowd(async (crowd) => {
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
    });
  },
};

/** Clients that send a part of a head and wait, until they are cut off. */
export const incomplete = {
  name: 'incomplete-heads',
  title: ({ quick }) => `${quick ? '1 000' : '3 000'} clients with incomplete heads of up to 31 KiB`,
  async play(scene) {
    const count = limitConnections(scene.pace(3000, 1000));
    const costs = [];
    // Without load, because its heap varies by more. One process, because it does not give memory back.
    const before = scene.service.memory();
    for (const { part, line } of parts) {
      await withCrowd(async (crowd) => {
        await crowd.open({ port: scene.service.port, count, style: 'waiting', bytes: part * 1024, line });
        let most = 0;
        for (let tenths = 0; tenths < 20; tenths++) {
          await scene.sleep(0.1);
          most = Math.max(most, scene.service.memory() - before);
        }
        const { open } = await crowd.state();
        const each = (most * 1024) / count;
        const what = `${part} KiB of a head${line === undefined ? '' : ' in short lines'}`;
        scene.demand(open === count, `only ${open} of ${count} were open with ${what}`);
        scene.demand(each <= maxPerConnection(part), `${what} cost ${each.toFixed(0)} KiB`);
        costs.push(`${what}: +${most.toFixed(0)} MiB, ${each.toFixed(0)} KiB for each`);
      });
    }
    scene.note(costs.join('; '));
    await scene.begin({ share: 0.1 });
    await scene.sleep(1);
    scene.faultEnds();
  },
};

/** Clients that keep their connections open and send nothing. */
export const idle = {
  name: 'idle-connections',
  setup: { environment: { KEEP_ALIVE: '120' } },
  title: ({ quick }) => `${quick ? '2 000' : '10 000'} idle connections`,
  async play(scene) {
    const count = limitConnections(scene.pace(10_000, 2000));
    await withCrowd(async (crowd) => {
      await scene.begin();
      await crowd.open({ port: scene.service.port, count, style: 'idle' });
      await scene.sleep(scene.pace(5, 2));
      const { open, statuses } = await crowd.state();
      scene.demand(open === count && statuses[200] === count, `${open} of ${count} connections were open and served`);
      scene.note(`${count} connections, kept alive after one response each`);
    });
  },
};
