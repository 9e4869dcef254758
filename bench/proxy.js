// npm run bench -- proxy: the gate as the proxy beside proxies that check nothing, all before one upstream.

import { processors } from './children.js';
import { installPackages } from './install.js';
import { load } from './load.js';
import { startServer } from './running.js';
import { serverWords, serviceWords } from './runtimes.js';
import { findFreePort, openScene } from './scene.js';
import { median } from './statistics.js';
import { measureTunnels } from './tunnel.js';

const full = { rounds: 7, seconds: 1 };
const quick = { rounds: 3, seconds: 1 };
const warmUpRequests = 20_000;
const tunnels = 8;

const missing = () => undefined;
const upstream = {
  command: () => serverWords('upstream'),
  environment: ({ port }) => ({ PORT: port }),
  ...{ missing, checks: 'none' },
};
const peer = (script) => ({
  command: () => serverWords(script),
  environment: ({ port, upstreamUrl }) => ({ PORT: port, UPSTREAM: upstreamUrl }),
  ...{ missing, checks: 'none' },
});
const servers = {
  gate: {
    command: () => serviceWords('here').with(-1, 'gate'),
    environment: ({ issuer, audience, port, upstreamUrl }) => ({
      ISSUER: issuer,
      IDP_AUDIENCE: audience,
      UPSTREAM: upstreamUrl,
      HOST: '127.0.0.1',
      PORT: port,
      ADMIN_PORT: 'off',
    }),
    missing,
  },
  'raw undici': peer('undici-proxy'),
  'http-proxy-3': peer('http-proxy-3'),
};
const aims = { 'raw undici': 0.85, 'http-proxy-3': 1 };

const round = (value, digits = 2) => value.toFixed(digits);

/** Prints the ratios of one run; whether all servers did what they must. */
export async function bench({ quick: isQuick, rounds, seconds }) {
  installPackages();
  const settings = { ...(isQuick ? quick : full), ...(rounds && { rounds }), ...(seconds && { seconds }) };
  const scene = await openScene();
  /** @type {Record<string, any[]>} */
  const samples = Object.fromEntries(['upstream', ...Object.keys(servers)].map((name) => [name, []]));
  try {
    const behind = await startServer('upstream', upstream, {
      ...{ scene, port: await findFreePort(), processor: processors.load },
    });
    const upstreamUrl = new URL('/', behind.url).origin;
    const authorization = `Bearer ${scene.mintOne()}`;
    const file = scene.write('proxy.txt', `${authorization}\n`);
    const about = { ...scene, upstreamUrl };
    const running = {};
    for (const [name, server] of Object.entries(servers)) {
      running[name] = await startServer(name.replace(' ', '-'), server, { scene: about, port: await findFreePort() });
      // Code that runs seldom is not compiled: by requests, not by time, since others may have the processor.
      for (let requests = 0; requests < warmUpRequests; ) {
        const { pid, url } = running[name];
        requests += (await load({ pid, url, file, once: false, seconds: 1 })).requests;
      }
    }
    // In turns, so that what others do on the machine falls on all.
    for (let i = 0; i < settings.rounds; i++) {
      for (const [name, { pid, url }] of Object.entries({ ...running, upstream: behind })) {
        const measured = await load({ pid, url, file, once: false, seconds: settings.seconds });
        if (measured.refused + measured.broken > 0) throw new Error(`${name}: ${JSON.stringify(measured)}`);
        const mebibytes =
          name === 'upstream' ? 0 : await measureTunnels({ url, authorization, tunnels, seconds: settings.seconds });
        samples[name].push({ ...measured, mebibytes });
      }
    }
    await Promise.all(Object.values(running).map(({ stop }) => stop()));
    await behind.stop();
  } finally {
    await scene.close();
  }
  report(samples);
  return true;
}

function report(samples) {
  const middle = (name, field) => median(samples[name].map((sample) => sample[field]));
  // Others on the machine only ever add to it.
  const least = (name) => Math.min(...samples[name].map(({ cpu }) => cpu));
  console.log('\nThe gate as the proxy, 32 connections, one token, one processor for each proxy\n');
  for (const name of Object.keys(samples)) {
    const tunnel = name === 'upstream' ? '' : `, WebSocket ${round(middle(name, 'mebibytes'), 0)} MiB/s`;
    console.log(
      `${name.padEnd(14)} ${round(middle(name, 'rate'), 0).padStart(6)}/s, ${round(middle(name, 'cpu'), 1)} µs of processor time a request, ` +
        `p50 ${round(middle(name, 'p50') / 1000)} ms, p99 ${round(middle(name, 'p99') / 1000)} ms${tunnel}`,
    );
  }
  console.log('');
  for (const [name, aim] of Object.entries(aims)) {
    const value = middle('gate', 'rate') / middle(name, 'rate');
    const byCpu = middle(name, 'cpu') / middle('gate', 'cpu');
    const byLeast = least(name) / least('gate');
    console.log(
      `gate : ${name.padEnd(13)} ${round(value)} (by processor time ${round(byCpu)}, of the best rounds ${round(byLeast)}; aim ${aim}, ${value >= aim ? 'met' : 'missed'}); ` +
        `WebSocket ${round(middle('gate', 'mebibytes') / middle(name, 'mebibytes'))}`,
    );
  }
  for (const field of ['p50', 'p99']) {
    const added = (middle('gate', field) - middle('upstream', field)) / 1000;
    console.log(
      `${field} added to the upstream's own: ${round(added)} ms; raw undici adds ${round((middle('raw undici', field) - middle('upstream', field)) / 1000)} ms`,
    );
  }
}
