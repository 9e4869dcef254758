// npm run bench -- gate: the gate beside nginx and as a proxy, each beside the same without checks, all before one upstream.
import { cpuTime, processors } from './children.js';
import { formatGate } from './gate-report.js';
import { gateRatios, gateServers, upstream } from './gate-servers.js';
import { installPackages } from './install.js';
import { load } from './load.js';
import { isDisturbed, runUndisturbed } from './measure.js';
import { makeSay } from './progress.js';
import { savePart } from './publish.js';
import { startServer } from './running.js';
import { findFreePort, openScene } from './scene.js';
import { estimate, isSettled } from './statistics.js';
import { measureTunnels } from './tunnel.js';

/** Servers start anew after so many rounds. */
const roundsAStart = 3;
const full = { most: 12, minutes: 4, seconds: 0.8, roundsAStart };
const quick = { ...full, most: 2, roundsAStart: 2 };
/** Code that runs seldom is not compiled: by requests, since others may have the processor; within so many loads of 1 s. */
const warmUp = { requests: 80_000, loads: 6 };
const tunnels = { count: 8, seconds: 0.6 };

/** Processor time for the same: what each round says about each aim. */
export function ratiosOf(samples) {
  const found = Object.entries(gateRatios).map(([name, [above, below]]) => [
    name,
    (samples[above] ?? []).flatMap(({ round, cpu }) => {
      const other = (samples[below] ?? []).find((each) => each.round === round);
      return other === undefined ? [] : [cpu / other.cpu];
    }),
  ]);
  return Object.fromEntries(found);
}

/** What the next round measures: all, or both sides of what is not settled. */
function planRound(round, samples, { most, isLate }) {
  const all = Object.keys(gateServers);
  if (round === 0) return all;
  if (round >= most || isLate()) return [];
  const ratios = ratiosOf(samples);
  const open = Object.keys(ratios).filter((name) => ratios[name].length > 0 && !isSettled(estimate(ratios[name])));
  const names = open.flatMap((name) => gateRatios[name]);
  const asked = names.flatMap((name) => gateServers[name].with ?? []);
  return all.filter((name) => names.includes(name) || asked.includes(name));
}

/** Prints the ratios; whether all servers did what they must. Kept with `write`. */
export async function bench({ quick: isQuick, rounds, seconds, write }) {
  installPackages();
  const settings = { ...(isQuick ? quick : full), ...(rounds && { most: rounds }), ...(seconds && { seconds }) };
  const startedAt = performance.now();
  const isLate = () => performance.now() - startedAt > settings.minutes * 60_000;
  const say = makeSay();
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
      const names = planRound(round, samples, { most: settings.most, isLate });
      if (names.length === 0) break;
      const running = await startAll(names, about, say);
      const loaded = Object.keys(running).filter((name) => gateServers[name].silent !== true);
      const asking = { running, token, scene, settings };
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
  const part = { date: new Date().toISOString(), settings, samples, rounds: ratiosOf(samples) };
  console.log(`\n${formatGate(part)}\n`);
  if (write && !isQuick) savePart('gate', part);
  return true;
}

/** Starts servers in their order: those that are asked stand before those that ask them. */
async function startAll(names, about, say) {
  const running = {};
  for (const name of names) {
    const server = gateServers[name];
    const missing = server.missing();
    if (missing !== undefined) {
      say(`${name} is left out: ${missing}`);
      continue;
    }
    running[name] = await startServer(name, server, { scene: about, port: await findFreePort() });
    about.gates[name] = running[name].url;
  }
  return running;
}

/** The file with the one request that a server is asked again and again. */
function writeRequest(scene, name, token, headers = {}) {
  const more = Object.entries(headers).map(([key, value]) => `\t${key}: ${value}`);
  return scene.write(`gate-${name}.txt`, `${token}\t${more.join('')}\n`);
}

/** What `load` is told of a server: its processes, its URL, its one request. */
function tell(name, { running, token, scene }) {
  const { path, headers, with: asked } = gateServers[name];
  const pid = [name, ...(asked === undefined ? [] : [asked])].map((each) => running[each].pid);
  const url = new URL(path, running[name].url).href;
  return { pid, url, file: writeRequest(scene, name, token, headers), once: false };
}

async function warm(about) {
  for (let i = 0, sent = 0; i < warmUp.loads && sent < warmUp.requests; i++) {
    sent += (await load({ ...about, seconds: 1 })).requests;
  }
}

async function measureServer(name, asking) {
  const { token, settings } = asking;
  const about = tell(name, asking);
  const measured = await runUndisturbed(async () => {
    const found = await load({ ...about, seconds: settings.seconds });
    if (found.refused + found.broken > 0) throw new Error(`${name}: ${found.refused} refused, ${found.broken} broken`);
    return found;
  }, ['first', 'again']);
  if (gateServers[name].tunnels !== true) return measured;
  const [pid] = about.pid;
  const spent = cpuTime(pid);
  const told = { url: about.url, authorization: token, tunnels: tunnels.count, seconds: tunnels.seconds };
  const tunnel = await measureTunnels(told);
  return { ...measured, mebibytes: tunnel.rate, tunnelCpu: (cpuTime(pid) - spent) / tunnel.mebibytes };
}

/** The upstream by itself: what a proxy adds to. It shares its processor with wrk, as it does behind the proxies. */
async function measureUpstream({ pid, url }, { token, scene, settings }) {
  const file = writeRequest(scene, 'upstream', token);
  const found = await load({ pid, url, file, once: false, seconds: settings.seconds });
  return { ...found, disturbed: isDisturbed(found) };
}
