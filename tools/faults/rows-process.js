// What happens to the processes: their clock, their end, their neighbours, their time.
import { createClock } from './clock.js';

const path = '/api/private';
const minute = 60;
/** libfaketime looks for a step about once a second. */
const feltSeconds = 10;
const fixed = (...tokens) => ({ type: 'fixed', path, tokens });

const clockStep = {
  name: 'clock-steps',
  title: 'wall clock steps by ±10 min',
  open: (bench) => {
    const clock = createClock(bench.folder);
    return { clock, environment: clock.environment };
  },
  prepare: (scene) => scene.setup.clock.step(0),
  async play(scene) {
    const { clock } = scene.setup;
    const now = Math.floor(Date.now() / 1000);
    const ending = scene.mint({ exp: now + 5 * minute });
    const begun = scene.mint({ iat: now });
    await scene.begin({
      more: [
        { name: 'ends in 5 min', weight: 10, expect: [200], source: fixed(ending) },
        { name: 'issued just now', weight: 10, expect: [200], source: fixed(begun) },
      ],
    });
    const seconds = scene.pace(3, 0.5);
    const step = async (by, [kind, token], status) => {
      await scene.expect(kind, [200, 401]);
      await clock.step(by);
      const felt = await scene.awaitStatus(token, status, feltSeconds);
      scene.demand(felt, `the step to ${by} s had no effect: "${kind}" did not get ${status}`);
      await scene.expect(kind, [status]);
      await scene.sleep(seconds);
    };
    await scene.sleep(seconds);
    await step(10 * minute, ['ends in 5 min', ending], 401);
    await step(0, ['ends in 5 min', ending], 200);
    await step(-10 * minute, ['issued just now', begun], 401);
    await step(0, ['issued just now', begun], 200);
    scene.faultEnds();
    scene.note(
      'libfaketime; a token is refused while, by that clock, it is over or not yet issued, and good again after',
    );
  },
};

const sigterm = {
  name: 'sigterm',
  title: 'SIGTERM in mid-load, then a new process',
  processes: 2,
  async play(scene) {
    const [first] = scene.services;
    await scene.begin();
    await scene.sleep(scene.pace(3, 1.5));
    const seconds = await scene.terminate(first);
    scene.demand(seconds <= 10, `it took ${seconds.toFixed(1)} s to end`);
    await scene.sleep(0.3); // another process counts the last responses
    const { answered, cut } = await scene.load.state('steady');
    // Its log has one line for each request that it has read.
    scene.unanswered(Math.max(0, first.requests - answered - scene.reports.warm.answered));
    scene.note(
      `exit 0 after ${seconds.toFixed(2)} s; ${cut} requests met a closed connection, unread, and were sent again`,
    );
    await scene.startAnother({ PORT: `${first.port}` });
    scene.faultEnds();
    await scene.sleep(scene.pace(3, 1.5));
  },
};

const stall = {
  name: 'stall',
  title: 'event loop stalled for 2 s (SIGSTOP)',
  async play(scene) {
    await scene.begin();
    await scene.sleep(scene.pace(3, 1.5));
    scene.service.signal('SIGSTOP');
    await scene.sleep(0.3);
    const before = await scene.load.state('steady');
    await scene.sleep(1.7);
    const after = await scene.load.state('steady');
    scene.demand(after.answered === before.answered, 'the service has responded while it was stopped');
    scene.service.signal('SIGCONT');
    scene.faultEnds();
    await scene.sleep(scene.pace(5, 3));
  },
};

/** Rows of the processes. */
export const processRows = [clockStep, sigterm, stall];
