// Faults of the gate under load.
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort, holdsWithin, listen, stop } from '../shared/network.js';
import { createUpstream, openGate, steadyRules } from './gate.js';
import { isLevel, peaks } from './level.js';

/** Seconds until a reload must be in force. */
const reloadSeconds = 15;
const metric = 'portcullis_rules_generation';

/** The decisions of the service, and one rule that changes. */
function makeRules(generation) {
  const [open, scoped] = steadyRules;
  // Another server in each generation: all that a reload can leave behind is left behind here.
  const rules = [open, { ...scoped, id: `scoped-${generation}` }];
  return generation % 2 === 0 ? [...rules, { id: 'comes', path: '/comes', access: 'open' }] : rules;
}

const reloads = {
  name: 'gate-reloads',
  title: ({ quick }) => `the gate as the proxy: ${quick ? 100 : '1 000'} reloads under load`,
  open: (bench) => openGate(bench, 'reloads', { rules: makeRules(1) }),
  async play(scene) {
    const { service, setup, issuer } = scene;
    const count = scene.pace(1000, 100);
    await scene.begin({ share: 0.05 });
    let wrong = 0;
    const startedAt = performance.now();
    for (let generation = 2; generation <= count + 1; generation++) {
      setup.write(issuer, makeRules(generation));
      service.signal('SIGHUP');
      const isIn = await holdsWithin(reloadSeconds, async () => (await service.count(metric)) === generation, 0);
      scene.demand(isIn, `the rules of generation ${generation} are not in force`);
      if (!isIn) break;
      // After this reload no decision may use the old rules.
      for (let i = 0; i < 4; i++) {
        if ((await scene.request('/comes')) !== (generation % 2 === 0 ? 200 : 403)) wrong++;
      }
    }
    const seconds = (performance.now() - startedAt) / 1000;
    scene.faultEnds();
    scene.demand(wrong === 0, `${wrong} decisions by rules that were no longer in force`);
    // The short form is over before the heap has found its size.
    if (!scene.bench.quick) scene.demand(isLevel(scene.samples), 'memory still grows at the end');
    const [third, last] = peaks(scene.samples);
    scene.note(
      `${count} reloads in ${seconds.toFixed(0)} s; each was in force when it was said to be; ` +
        `memory at most ${third.toFixed(0)} MiB in the third quarter, ${last.toFixed(0)} MiB in the last`,
    );
  },
};

/** Servers that fail, by the name of their row; each ends what `start` began. */
const failures = {
  hangs: { title: 'hangs', status: 504, start: () => start(createServer(() => {})) },
  garbage: {
    title: 'sends garbage',
    status: 502,
    start: () => start(createServer(({ socket }) => void socket.end('\0garbage\r\n\r\n'))),
  },
  restarts: { title: 'restarts again and again', status: 502, start: startRestarting },
};

async function start(server) {
  return { port: await listen(server), stop: () => stop(server) };
}

/** A server that is up for 200 ms, then down for 200 ms. */
async function startRestarting() {
  const server = createUpstream();
  // A port that no outgoing connection takes while the server is down.
  const port = await findFreePort();
  await listen(server, port);
  let isOver = false;
  const turns = (async () => {
    while (!isOver) {
      await sleep(200);
      await stop(server);
      await sleep(200);
      await listen(server, port);
    }
  })();
  return {
    port,
    async stop() {
      isOver = true;
      await turns;
      await stop(server);
    },
  };
}

/** The steady load goes to one upstream, while another, to which half as many requests go, fails. */
const upstreamRow = ([name, { title, status, ...failure }]) => ({
  name: `gate-upstream-${name}`,
  title: `the gate as the proxy: one of two upstreams ${title}`,
  async open(bench) {
    const [sound, failing] = await Promise.all([start(createUpstream()), failure.start()]);
    const rules = [
      ...steadyRules.map((rule) => ({ ...rule, upstream: 'sound' })),
      { id: 'failing', path: '/failing', access: 'open', upstream: 'failing' },
    ];
    const upstreams = { sound: `http://127.0.0.1:${sound.port}`, failing: `http://127.0.0.1:${failing.port}` };
    return {
      ...(await openGate(bench, name, { rules, upstreams })),
      environment: { UPSTREAM_TIMEOUT: '1' },
      stop: () => Promise.all([sound.stop(), failing.stop()]),
    };
  },
  async play(scene) {
    const rate = Math.round(scene.undisturbed.rate * 0.1);
    await scene.begin({ share: 0.2 });
    // A response for each; a restarting server also responds with 200.
    const expect = name === 'restarts' ? [200, status] : [status];
    const source = { type: 'fixed', path: '/failing', tokens: [] };
    await scene.sendKind('failing', { source, expect, upstreamFails: true, rate, connections: 16 });
    await scene.sleep(scene.pace(10, 3));
    const { answered, statuses } = await scene.stopStream('failing');
    scene.faultEnds();
    await scene.sleep(1);
    scene.note(
      `${answered} requests for the failing upstream got ${Object.keys(statuses).join(' or ')}; the others lost nothing`,
    );
  },
});

/** Bodies of logouts that wait, of one address: a quarter of 1,024. */
const waitingBodies = 256;
const bodySeconds = 5;
/** Connections of the steady load, and requests of this row. */
const steadyConnections = 64 + 16;

/** Bodies of logouts that stop after one byte, all from one address. */
const slowLogouts = {
  name: 'gate-slow-logouts',
  title: 'the gate as the proxy: 1 500 logouts whose body stops after one byte',
  async open(bench) {
    const { environment, ...gate } = await openGate(bench, 'logouts');
    return { ...gate, environment: { ...environment, LOGOUT_CLIENTS: 'app', UPLOAD_TIMEOUT: String(bodySeconds) } };
  },
  async play(scene) {
    await scene.begin({ share: 0.2 });
    const open = new Set();
    let refused = 0;
    const head = `POST /backchannel-logout HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\n`;
    const begin = () => {
      const socket = scene.connect();
      open.add(socket);
      socket.once('close', () => open.delete(socket)).write(`${head}a`);
      socket.on('data', (part) => {
        if (part.includes(' 408 ')) refused++;
      });
    };
    for (let i = 0; i < 1500; i++) begin();
    let pending = 0;
    const body = new URLSearchParams({ logout_token: 'none' });
    const statuses = new Set();
    for (let tenths = 0; tenths < 300 && open.size > 0; tenths++) {
      await scene.sleep(0.1);
      pending = Math.max(pending, await scene.service.count('portcullis_requests_in_flight'));
      // One of the same address that is complete; few enough that invalid ones are not limited.
      if (tenths % 10 !== 0) continue;
      statuses.add(
        (await fetch(`http://127.0.0.1:${scene.service.port}/backchannel-logout`, { method: 'POST', body })).status,
      );
    }
    scene.faultEnds();
    scene.demand(pending <= waitingBodies + steadyConnections, `${pending} requests were pending`);
    scene.demand([...statuses].join() === '400', `complete logouts got ${[...statuses].join()} meanwhile`);
    scene.demand(open.size === 0 && refused === 1500, `${open.size} are open after 30 s, ${refused} got 408`);
    scene.note(
      `at most ${pending} requests pending, ${refused} get 408; complete logouts of this address are processed`,
    );
  },
};

/** Rows of the gate. */
export const gateRows = [reloads, slowLogouts, ...Object.entries(failures).map(upstreamRow)];
