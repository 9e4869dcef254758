// npm run bench -- profile [--workload NAME,…] [--write]: where the processor time of a request goes, by sampling profiler.
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { measure } from './measure.js';
import { fillPool } from './pool.js';
import { median } from './ratios.js';
import { table } from './report.js';
import { readAnswers } from './rounds.js';
import { startServer } from './running.js';
import { findFreePort, openScene } from './scene.js';
import { servers } from './servers.js';
import { workloads } from './workloads.js';

const profiled = ['open', 'open-token', 'warm', 'malformed', 'cold', 'dpop'];
const page = new URL('../docs/performance.md', import.meta.url);
/** Microseconds between two samples. */
const interval = 250;
const timing = { seconds: 3, warmUpSeconds: 1 };
const pace = 30_000;
const rounds = 3;

/** Names of what Node implements outside JavaScript, by what it does. */
const natives = [
  ['send the answer: system call', /^(?:writev|writeLatin1String|writeUtf8String|writeBuffer)$/],
  ['write the log: system call', /^(?:writeString|writeBuffers)$/],
];
/** Of the first that fits, by the URL of the function. */
const places = [
  ['SHA-256 of the token', (url, name) => url === 'node:internal/crypto/hash' && name === 'hash'],
  ['signature', (url) => url === 'node:internal/crypto/sig'],
  ['Node: buffers, base64', (url) => url === 'node:buffer' || url === 'node:internal/buffer'],
  ['Node: HTTP, streams, sockets, timers', (url) => url.startsWith('node:')],
  ['Portcullis: log line', (url) => url.includes('/dist/service/log.') || url.includes('/sonic-boom/')],
  ['Portcullis: around the gate', (url) => url.includes('/dist/service/') || url.includes('/dist/adapters/')],
  ['Portcullis: the gate', (url) => url.includes('/dist/') || url.includes('/node_modules/')],
];

function groupOf({ functionName, url }) {
  if (functionName === '(garbage collector)') return 'garbage collection';
  if (functionName === '(idle)') return undefined;
  const native = url === '' ? natives.find(([, pattern]) => pattern.test(functionName)) : undefined;
  const place = url === '' ? undefined : places.find(([, fits]) => fits(url, functionName));
  // The HTTP parser, reading, and waiting for sockets have no name of their own.
  return (native ?? place)?.[0] ?? 'Node: parser, reading, and other native code';
}

/** The share of each group in the samples of the last `milliseconds` of a profile, idle time left out. */
function readShares(file, milliseconds) {
  const { nodes, samples, timeDeltas, endTime, startTime } = JSON.parse(readFileSync(file, 'utf8'));
  const groups = new Map(nodes.map(({ id, callFrame }) => [id, groupOf(callFrame)]));
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

const floors = {
  open: 'raw-floor',
  'open-token': 'raw-floor',
  warm: 'raw-floor',
  cold: 'cold-floor',
  dpop: 'dpop-floor',
};

/** CPU µs a request without a profiler, medians of rounds; and the shares of the groups under it. */
async function profileWorkload({ scene, pool, workload }) {
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
  const own = { name: 'portcullis', cpu: [] };
  const floor = { name: floors[workload], cpu: [] };
  for (let round = 0; round < rounds; round++) {
    for (const each of [own, floor]) {
      if (each.name !== undefined) each.cpu.push((await run(each.name, servers[each.name])).cpu);
    }
  }
  const folder = mkdtempSync(join(scene.folder, 'profile-'));
  const flags = ['--cpu-prof', '--cpu-prof-dir', folder, '--cpu-prof-interval', String(interval)];
  const command = (about) => {
    const [node, ...words] = servers.portcullis.command(about);
    return [node, ...flags, ...words];
  };
  let ending = 0;
  await run('portcullis', { ...servers.portcullis, command }, (stoppedAt) => {
    ending = performance.now() - stoppedAt;
  });
  const [file] = readdirSync(folder);
  const shares = readShares(join(folder, file), ending + timing.seconds * 900);
  return { workload, shares, cpu: median(own.cpu), floor: floor.cpu.length > 0 ? median(floor.cpu) : undefined };
}

/** Prints the table, and with `write` puts it into the documentation. */
export async function bench({ workload = [], write = false }) {
  const names = workload.length > 0 ? profiled.filter((name) => workload.includes(name)) : profiled;
  if (names.length === 0) throw new RangeError(`There are profiles of ${profiled.join(', ')}.`);
  const scene = await openScene();
  try {
    const pool = await fillPool(scene, { names, ...timing, pace });
    const answers = await readAnswers(scene, await findFreePort());
    const columns = [];
    for (const name of names)
      columns.push(await profileWorkload({ scene: { ...scene, answers }, pool, workload: name }));
    const text = formatProfile(columns);
    console.log(text);
    if (!write) return;
    const before = readFileSync(page, 'utf8');
    writeFileSync(page, before.replace(/(<!-- bench: profile -->\n)[\s\S]*?(<!-- end -->)/, `$1${text}\n$2`));
  } finally {
    await scene.close();
  }
}

function formatProfile(columns) {
  const groups = [...new Set(columns.flatMap(({ shares }) => [...shares.keys()]))];
  const first = columns[0].shares;
  groups.sort((a, b) => (first.get(b) ?? 0) - (first.get(a) ?? 0));
  const show = (value) => (value === undefined ? '' : value.toFixed(1));
  return table(
    ['µs of processor time a request', ...columns.map(({ workload }) => workloads[workload].label)],
    [
      ...groups.map((group) => [group, ...columns.map(({ shares, cpu }) => show((shares.get(group) ?? 0) * cpu))]),
      ['all', ...columns.map(({ cpu }) => show(cpu))],
      ['its floor', ...columns.map(({ floor }) => show(floor))],
    ],
  );
}
