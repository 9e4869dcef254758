// npm run bench -- gate: the gate next to nginx and as a proxy, each compared with the same setup without checks.

import { load } from '../load/wrk.js';
import { findFreePort } from '../shared/network.js';
import { processors } from '../shared/processes.js';
import { byRound, estimate, isSettled, ratiosOf } from '../shared/statistics.js';
import { formatGate } from './gate-report.js';
import { gateRatios, gateServers, upstream } from './gate-servers.js';
import { installPackages } from './install.js';
import { isDisturbed, runUndisturbed } from './measure.js';
import { savePart } from './publish.js';
import { say, startServer } from './running.js';
import { openScene } from './scene.js';

/** Rounds between restarts of the servers. */
const roundsAStart = 3;
const full = { most: 12, minutes: 6, seconds: 0.8, warmUpSeconds: 0.8, roundsAStart };
const quick = { ...full, most: 2, roundsAStart: 2 };
/** Code that runs seldom is not compiled: by requests, since others may have the processor; within so many loads of 1 s. */
const warmUp = { requests: 80_000, loads: 6 };
/** Tokens for each second of a measurement, which ends with the last one. */
const newTokens = 5000;

/**
 * Processor time for the same: what each round says about each aim.
 *
 * @param {Record<string, { round: number, cpu: number }[]>} samples
 * @param {Record<string, readonly string[]>} ratios
 */
const compareCosts = (samples, ratios) =>
  Object.fromEntries(
    Object.entries(ratios).map(([name, [above, below]]) => [
      name,
      ratiosOf(byRound(samples[above]), byRound(samples[below])),
    ]),
  );

/** Plans the next round: all servers, or both sides of unsettled ratios. */
function planRound(round, samples, { most, isLate, servers, ratios: compared }) {
  const all = Object.keys(servers);
  if (round === 0) return all;
  if (round >= most || isLate()) return [];
  const ratios = compareCosts(samples, compared);
  const open = Object.keys(ratios).filter((name) => ratios[name].length > 0 && !isSettled(estimate(ratios[name])));
  const names = open.flatMap((name) => compared[name]);
  const asked = names.flatMap((name) => servers[name].with ?? []);
  return all.filter((name) => names.includes(name) || asked.includes(name));
}

/** Prints the ratios; whether all servers did what they must. Kept with `write`. */
export async function bench({ quick: isQuick, rounds, seconds, write }) {
  const part = await measureGates({ quick: isQuick, rounds, seconds, servers: gateServers, ratios: gateRatios });
  console.log(`\n${formatGate(part)}\n`);
  if (write && !isQuick) savePart('gate', part);
  return true;
}

/**
 * Measures `servers` in rounds until each of `ratios` is settled or the time is up.
 *
 * @param {{ quick?: boolean, rounds?: number, seconds?: number, servers: Record<string, any>, ratios: Record<string, readonly string[]> }} about
 */
export async function measureGates({ quick: isQuick, rounds, seconds, servers, ratios }) {
  installPackages();
  const settings = { ...(isQuick ? quick : full), ...(rounds && { most: rounds }), ...(seconds && { seconds }) };
  const startedAt = performance.now();
  const isLate = () => performance.now() - startedAt > settings.minutes * 60_000;
  const scene = await openScene();
  const samples = {};
  try {
    const behind = await startServer('upstream', upstream, {
      ...{ scene, port: await findFreePort(), processor: processors.load },
    });
    const about = { ...scene, upstreamUrl: new URL('/', behind.url).origin, gates: {} };
    const token = `Bearer ${scene.mintOne()}`;
    const keep = (name, sample) => {
      samples[name] ??= [];
      samples[name].push(sample);
    };
    for (let round = 0; ; ) {
      const names = planRound(round, samples, { most: settings.most, isLate, servers, ratios });
      if (names.length === 0) break;
      const running = await startAll(names, { about, servers });
      const loaded = Object.keys(running).filter((name) => servers[name].silent !== true);
      const asking = { running, servers, token, scene, settings };
      for (const name of loaded) await warm(tell(name, asking));
      for (const until = round + settings.roundsAStart; round < until; round++) {
        for (const name of loaded.reverse()) {
          const sample = await measureServer(name, asking);
          keep(name, { round, ...sample });
          say(`round ${round + 1}: ${name.padEnd(14)} ${Math.round(sample.rate)}/s, ${sample.cpu.toFixed(1)} µs`);
        }
        keep('upstream', { round, ...(await measureUpstream(behind, asking)) });
      }
      await Promise.all(Object.values(running).map(({ stop }) => stop()));
    }
    await behind.stop();
  } finally {
    await scene.close();
  }
  return { date: new Date().toISOString(), settings, samples, rounds: compareCosts(samples, ratios) };
}

/** Starts servers in order: a queried server before the server that queries it. */
async function startAll(names, { about, servers }) {
  const running = {};
  for (const name of names) {
    const server = servers[name];
    const isAlone = server.with !== undefined && running[server.with] === undefined;
    const missing = isAlone ? `it queries ${server.with}` : server.missing();
    if (missing !== undefined) {
      say(`${name} is left out: ${missing}`);
      continue;
    }
    running[name] = await startServer(name, server, { scene: about, port: await findFreePort() });
    about.gates[name] = running[name].url;
  }
  return running;
}

/** Writes the file with the requests of a server: one for each token. */
function writeRequest(scene, name, tokens, headers = {}) {
  const more = Object.entries(headers).map(([key, value]) => `\t${key}: ${value}`);
  return scene.write(
    `gate-${name}.txt`,
    [tokens]
      .flat()
      .map((each) => `${each}\t${more.join('')}\n`)
      .join(''),
  );
}

/** Returns the arguments of `load` for a server: its processes, its URL, its request. */
function tell(name, { running, servers, token, scene }) {
  const { path, headers, with: asked } = servers[name];
  const pid = [name, ...(asked === undefined ? [] : [asked])].map((each) => running[each].pid);
  const url = new URL(path, running[name].url).href;
  return { pid, url, file: writeRequest(scene, name, token, headers), once: false };
}

/** Returns the arguments with a new token for each request. */
async function renew(name, { scene, settings, servers }, about) {
  const tokens = await scene.makeBearer(Math.ceil(settings.seconds * newTokens));
  const file = writeRequest(scene, `${name}-new`, tokens, servers[name].headers);
  return { ...about, file, once: true };
}

async function warm(about) {
  for (let i = 0, sent = 0; i < warmUp.loads && sent < warmUp.requests; i++) {
    sent += (await load({ ...about, seconds: 1 })).requests;
  }
}

async function measureServer(name, asking) {
  const { servers, settings } = asking;
  const about = tell(name, asking);
  // Each server was idle while the others were measured: V8 discards compiled code then.
  await load({ ...about, seconds: settings.warmUpSeconds });
  return runUndisturbed(async () => {
    const own = servers[name].isNew === true ? await renew(name, asking, about) : about;
    const found = await load({ ...own, seconds: settings.seconds });
    if (found.refused + found.broken > 0) throw new Error(`${name}: ${found.refused} refused, ${found.broken} broken`);
    return found;
  }, ['first', 'again']);
}

/** The upstream by itself: what a proxy adds to. It shares its processor with wrk, as it does behind the proxies. */
async function measureUpstream({ pid, url }, { token, scene, settings }) {
  const file = writeRequest(scene, 'upstream', token);
  const found = await load({ pid, url, file, once: false, seconds: settings.seconds });
  return { ...found, disturbed: isDisturbed(found) };
}
