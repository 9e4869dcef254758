// Faults at start and stop, and unread responses: outages across restarts, stops under new connections.
import { join } from 'node:path';
import { askOnce } from '../load/asker.js';
import { limitConnections, withCrowd } from '../load/crowd.js';
import { startService } from './service.js';

/** Seconds until a connection with unread responses is closed. */
const unreadSeconds = 40;
/** MiB of one process. V8 has a larger young generation since Node 24. */
const pipeliningMemory = Number.parseInt(process.versions.node, 10) >= 24 ? 300 : 200;

const pipelining = {
  name: 'pipelining',
  title: ({ quick }) => `${quick ? '300' : '1 300'} clients that pipeline 1 700 requests each and never read`,
  setup: { environment: { NODE_OPTIONS: '--max-old-space-size=512' } },
  async play(scene) {
    const count = limitConnections(scene.pace(1300, 300));
    await withCrowd(async (crowd) => {
      await scene.begin({ share: 0.3 });
      await scene.sleep(scene.pace(2, 1));
      const before = scene.samples.length;
      const { opened } = await crowd.open({ port: scene.service.port, count, style: 'pipelining' });
      scene.demand(opened === count, `only ${opened} of ${count} could connect`);
      await scene.sleep(scene.pace(5, 2));
      const most = Math.max(...scene.samples.slice(before));
      scene.demand(most <= pipeliningMemory, `memory was ${most.toFixed(0)} MiB`);
      let held = await scene.service.count('portcullis_connections');
      for (let seconds = 0; held > 128 && seconds < unreadSeconds; seconds++) {
        await scene.sleep(1);
        held = await scene.service.count('portcullis_connections');
      }
      scene.faultEnds();
      scene.demand(held <= 128, `${held} connections are still held ${unreadSeconds} s later`);
      scene.note(`memory at most ${most.toFixed(0)} MiB; those clients are closed, other clients get responses`);
      await scene.sleep(1);
    });
  },
};

const restartInOutage = {
  name: 'restart-in-outage',
  title: 'provider down, then a restart with `KEYS_CACHE`',
  processes: 2,
  open: async ({ folder }) => ({ environment: { KEYS_CACHE: join(folder, 'keys.json') } }),
  async play(scene) {
    const [first] = scene.services;
    await scene.begin();
    await scene.sleep(scene.pace(2, 1));
    await scene.breakProvider('down');
    await scene.terminate(first);
    await scene.startAnother({ PORT: `${first.port}` });
    scene.faultEnds();
    await scene.sleep(scene.pace(3, 1.5));
    scene.demand(scene.service.countLines('keys_restored') === 1, 'the keys were not restored');
    scene.demand(scene.service.countLines('keys_fetched') === 0, 'the provider was there');
  },
};

const sigtermDrain = {
  name: 'sigterm-drain',
  title: ({ quick }) => `SIGTERM under new connections, ${quick ? 3 : 10} times, with a drain`,
  processes: 11,
  async play(scene) {
    await scene.begin({ share: 0.1 });
    const runs = scene.pace(10, 3);
    const request = 'GET /api/public HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
    const arrivals = [];
    for (let run = 0; run < runs; run++) {
      const service = await startService({
        provider: scene.provider,
        identity: scene.bench.identity,
        environment: { DRAIN_DELAY: '3' },
      });
      const arriving = setInterval(() => arrivals.push(askOnce(service, request)), 2);
      await scene.sleep(0.5);
      const ended = scene.terminate(service);
      // A load balancer checks readiness, then sends no more requests.
      while ((await fetch(`${service.adminUrl}/readyz`)).status === 200) await scene.sleep(0.02);
      await scene.sleep(0.3);
      clearInterval(arriving);
      await Promise.all(arrivals);
      await ended;
    }
    scene.faultEnds();
    const broken = (await Promise.all(arrivals)).filter((status) => status !== 200).length;
    scene.demand(broken === 0, `${broken} of ${arrivals.length} new connections got no response`);
    scene.note(`${runs} stops, ${arrivals.length} new connections, ${broken} resets; \`DRAIN_DELAY=3\``);
  },
};

const blockedLog = {
  name: 'blocked-log',
  title: 'log reader blocked',
  async play(scene) {
    const { service } = scene;
    await scene.begin({ share: 0.7 });
    await scene.sleep(scene.pace(2, 1));
    service.blockLog();
    await scene.sleep(scene.pace(12, 6));
    const dropped = await service.count('portcullis_log_lines_dropped_total');
    service.readLog();
    scene.faultEnds();
    await scene.sleep(scene.pace(3, 1.5));
    scene.note(`requests are not affected; ${dropped} lines were dropped, and counted in a metric`);
    // Buffered lines are read first, and the last lines are in flight: a busy reader needs some seconds.
    let counted = false;
    for (let seconds = 0; !counted && seconds < 15; seconds++) {
      const { answered } = await scene.load.state('steady');
      const droppedInAll = await service.count('portcullis_log_lines_dropped_total');
      counted = service.requests + droppedInAll > answered * 0.95;
      if (!counted) await scene.sleep(1);
    }
    scene.demand(counted, 'lines were lost and not counted');
  },
};

/** Rows of starts and stops, and of those who do not listen. */
export const lifecycleRows = [pipelining, restartInOutage, sigtermDrain, blockedLog];
