// npm run bench -- pace: the gate as the proxy, raw undici and nginx without checks at 1,000 requests a second; latencies count from
// the moment at which a request was due.
import { setTimeout as sleep } from 'node:timers/promises';
import { startLoad } from '../load/streams.js';
import { load } from '../load/wrk.js';
import { findFreePort } from '../shared/network.js';
import { gateServers } from './gate-servers.js';
import { savePart } from './publish.js';
import { formatPace } from './report.js';
import { say, startServer } from './running.js';
import { openScene } from './scene.js';

const full = { seconds: 2, warmUpSeconds: 2, rounds: 9 };
const quick = { seconds: 1, warmUpSeconds: 1, rounds: 2 };
/** Proxies that are compared, and the requests a second to each. */
const proxies = ['proxy', 'undici', 'nginx-plain'];
const proxyRate = 1000;

/** Milliseconds after which a request without a response is lost. */
const patience = 3000;

/** Sends at the rate; what came of it. */
async function sendAt(generator, { url, token, seconds }) {
  const { port, pathname: path } = new URL(url);
  const kind = {
    name: 'good',
    weight: 1,
    expect: [200],
    timed: true,
    source: { type: 'fixed', path, tokens: [token] },
  };
  const limit = proxyRate * seconds;
  const rate = { rate: proxyRate, limit, connections: 32, spins: true };
  await generator.start('pace', { port: Number(port), ...rate, kinds: [kind] });
  const end = performance.now() + seconds * 1000 + patience;
  for (await sleep(seconds * 1000); !(await generator.state('pace')).done && performance.now() < end; ) await sleep(50);
  const report = await generator.stop('pace');
  if ((report.statuses[200] ?? 0) !== limit) throw new Error(`${url}: not every response was 200`);
  return report;
}

/** Measures the proxies in turn; the 99th percentiles of each, one a round, in milliseconds. */
async function measureProxies({ scene, settings }) {
  const missing = proxies.flatMap((name) => gateServers[name].missing() ?? []);
  if (missing.length > 0) throw new Error(missing.join(', '));
  const opened = [];
  const generator = startLoad();
  const open = async (name, server, about) => {
    opened.push(await startServer(`pace-${name}`, server, { ...about, port: await findFreePort() }));
    return opened.at(-1);
  };
  try {
    // The generator never sleeps, so the upstream shares the processor of the proxies, which are idle most of the time.
    const { url: behind } = await open('upstream', { ...gateServers.upstream, processor: undefined }, { scene });
    const about = { ...scene, upstreamUrl: new URL('/', behind).origin };
    const token = scene.mintOne();
    const file = scene.write('pace-proxies.txt', `Bearer ${token}\n`);
    const subjects = [];
    for (const name of proxies) {
      const { url, pid } = await open(name, gateServers[name], { scene: about });
      const subject = { name, url: new URL(gateServers[name].path, url).href, p99: /** @type {number[]} */ ([]) };
      await load({ pid, url: subject.url, once: false, file, seconds: settings.warmUpSeconds });
      subjects.push(subject);
    }
    for (let round = 0; round < settings.rounds; round++) {
      for (const { name, url, p99 } of subjects) {
        const found = await sendAt(generator, { url, token, seconds: settings.seconds });
        p99.push(found.p99);
        say(`round ${round + 1}: ${name} at ${proxyRate}/s: p99 ${found.p99.toFixed(2)} ms`);
      }
    }
    return subjects.map(({ name, p99 }) => ({ name, rate: proxyRate, p99 }));
  } finally {
    await generator.end();
    for (const running of opened.reverse()) await running.stop();
  }
}

/** Prints the table; kept with `write`. */
export async function bench({ quick: isQuick, write }) {
  const settings = isQuick ? quick : full;
  const scene = await openScene();
  try {
    const measured = await measureProxies({ scene, settings });
    const part = { date: new Date().toISOString(), settings, proxies: measured };
    console.log(`\n${formatPace(part)}\n`);
    if (write && !isQuick) savePart('pace', part);
    return true;
  } finally {
    await scene.close();
  }
}
