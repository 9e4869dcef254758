// npm run bench -- profile [--only SERVER,…] [--workload NAME,…] [--write]: where the processor time of a request goes, by sampling profiler.
import { existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../shared/network.js';
import { median } from '../shared/statistics.js';
import { installPackages } from './install.js';
import { measure } from './measure.js';
import { fillPool } from './pool.js';
import { formatProfile } from './profile-report.js';
import { readResults, savePart } from './publish.js';
import { readAnswers } from './rounds.js';
import { startServer } from './running.js';
import { openScene } from './scene.js';
import { servers } from './servers.js';

/** Microseconds between two samples. */
const interval = 250;
const timing = { seconds: 1.5, warmUpSeconds: 2 };
const pace = 25_000;

/** Groups of native functions by name; the first match counts. */
const natives = [
  ['send the response: system call', /^(?:writev|writeLatin1String|writeUtf8String|writeBuffer|writeHeadAndEnd)$/],
  ['write the log: system call', /^(?:writeString|writeBuffers)$/],
];
/**
 * Groups by the URL of the function; the first match counts.
 *
 * @type {[group: string, fits: (url: string, name: string) => boolean][]}
 */
const places = [
  ['SHA-256 of the token', (url, name) => url === 'node:internal/crypto/hash' && name === 'hash'],
  ['signature', (url) => url === 'node:internal/crypto/sig'],
  ['buffers, base64', (url) => url === 'node:buffer' || url === 'node:internal/buffer'],
  ['HTTP, streams, sockets, timers', (url) => /^(?:node|internal):/.test(url)],
  ['Portcullis: log line', (url) => /\/src\/server\/observation\/(?:log|request-l)|\/sonic-boom\//.test(url)],
  ['Portcullis: around the gate', (url) => /\/src\/(?:server|serve|adapters)\//.test(url)],
  ['Portcullis: the gate', (url) => url.includes('/src/') || url.includes('/node_modules/')],
];
const rawFloor = (name) => ({ open: name, 'open-token': name, warm: name });

/** Workloads of each profiled server, and the server to compare it with. */
const subjects = {
  portcullis: {
    workloads: ['open', 'open-token', 'warm', 'malformed', 'cold', 'dpop'],
    natives,
    beside: { label: 'its floor', servers: { ...rawFloor('raw-floor'), cold: 'cold-floor', dpop: 'dpop-floor' } },
  },
  'portcullis-node26': {
    workloads: ['open', 'warm', 'cold'],
    natives,
    beside: { label: 'its floor', servers: rawFloor('raw-floor-node26') },
  },
};

/** The source maps of the files of the build that were met. @type {Map<string, SourceMap>} */
const maps = new Map();

/** The folder of the build. */
const built = new URL('../../dist/', import.meta.url).href;

/** Returns the location of a function in the sources, or in its own file. */
function sourceOf({ url, lineNumber, columnNumber }) {
  // A file without code of the sources has no map.
  if (!url.startsWith(built) || !existsSync(fileURLToPath(`${url}.map`))) return url;
  const map = maps.get(url) ?? new SourceMap(JSON.parse(readFileSync(fileURLToPath(`${url}.map`), 'utf8')));
  maps.set(url, map);
  const found = map.findEntry(lineNumber, columnNumber);
  return 'originalSource' in found ? new URL(found.originalSource, url).href : url;
}

function groupOf(frame, natives) {
  const { functionName } = frame;
  const url = sourceOf(frame);
  if (functionName === '(garbage collector)') return 'garbage collection';
  if (functionName === '(idle)') return undefined;
  const native = url === '' ? natives.find(([, pattern]) => pattern.test(functionName)) : undefined;
  const place = url === '' ? undefined : places.find(([, fits]) => fits(url, functionName));
  // The HTTP parser, reads, and waits for sockets have no names.
  return (native ?? place)?.[0] ?? 'parser, reading, and other native code';
}

/** The share of each group in the samples of the last `milliseconds` of a profile, idle time left out. */
function readShares(file, milliseconds, natives) {
  const { nodes, samples, timeDeltas, endTime, startTime } = JSON.parse(readFileSync(file, 'utf8'));
  const groups = new Map(nodes.map(({ id, callFrame }) => [id, groupOf(callFrame, natives)]));
  const shares = new Map();
  let at = startTime;
  let total = 0;
  for (const [index, id] of samples.entries()) {
    at += timeDeltas[index];
    const group = groups.get(id);
    if (group === undefined || at < endTime - milliseconds * 1000) continue;
    total += timeDeltas[index];
    shares.set(group, (shares.get(group) ?? 0) + timeDeltas[index]);
  }
  return new Map([...shares].map(([group, time]) => [group, time / total]));
}

/** CPU µs a request without a profiler; and the shares of the groups under it. */
async function profileWorkload({ scene, pool, subject, workload, kept }) {
  const { natives, beside } = subjects[subject];
  const run = async (name, server, after) => {
    const running = await startServer(name, server, { scene, port: await findFreePort() });
    try {
      return await measure({ name, workload, server, running, pool, scene, ...timing });
    } finally {
      const stoppedAt = performance.now();
      await running.stop();
      after?.(stoppedAt);
    }
  };
  /** Returns the processor time from the last complete run, or measures it. */
  const costOf = async (name) => {
    const known = (kept?.samples[name]?.[workload] ?? []).map(({ cpu }) => cpu);
    return known.length > 0 ? median(known) : (await run(name, servers[name])).cpu;
  };
  const other = beside.servers[workload];
  const cpu = await costOf(subject);
  const besideCpu = other === undefined ? undefined : await costOf(other);
  const folder = mkdtempSync(join(scene.folder, 'profile-'));
  const flags = ['--cpu-prof', '--cpu-prof-dir', folder, '--cpu-prof-interval', String(interval)];
  const command = (about) => {
    const [runtime, ...words] = servers[subject].command(about);
    return [runtime, ...flags, ...words];
  };
  let ending = 0;
  await run(subject, { ...servers[subject], command }, (stoppedAt) => {
    ending = performance.now() - stoppedAt;
  });
  const [file] = readdirSync(folder);
  const shares = readShares(join(folder, file), ending + timing.seconds * 900, natives);
  return { workload, shares: Object.fromEntries(shares), cpu, beside: besideCpu };
}

/** Prints a table for each server. All of them are kept with `write`. */
export async function bench({ only = [], workload = [], write = false }) {
  const chosen = Object.keys(subjects).filter((name) => only.length === 0 || only.includes(name));
  const wanted = (name) => subjects[name].workloads.filter((each) => workload.length === 0 || workload.includes(each));
  const names = [...new Set(chosen.flatMap(wanted))];
  if (names.length === 0) {
    const lists = Object.entries(subjects).map(([name, { workloads }]) => `${name} (${workloads.join(', ')})`);
    throw new RangeError(`There are profiles of ${lists.join('; ')}.`);
  }
  installPackages();
  const scene = await openScene();
  const part = {};
  // With `write`, the compared figures must come from the same run.
  const kept = write ? readResults().http : undefined;
  try {
    const pool = await fillPool(scene, { names, ...timing, pace });
    const answers = await readAnswers(scene, await findFreePort());
    for (const subject of chosen) {
      const columns = [];
      for (const name of wanted(subject)) {
        const about = { scene: { ...scene, answers }, pool, subject, workload: name, kept };
        columns.push(await profileWorkload(about));
      }
      part[subject] = { columns, beside: subjects[subject].beside.label };
      console.log(`${servers[subject].label}\n${formatProfile(part[subject])}\n`);
    }
  } finally {
    await scene.close();
  }
  if (write && only.length === 0 && workload.length === 0) savePart('profile', part);
}
