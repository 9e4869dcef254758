// npm run bench -- pace: the service at a fixed rate, at a half and at four fifths of what it can do; latencies count from
// the moment at which a request was due.
import { fileURLToPath } from 'node:url';
import { processors, startChild } from './children.js';
import { load } from './load.js';
import { formatPace } from './pace-report.js';
import { makeSay } from './progress.js';
import { savePart } from './publish.js';
import { readAnswers } from './rounds.js';
import { startServer } from './running.js';
import { findFreePort, openScene } from './scene.js';
import { servers } from './servers.js';
import { workloads } from './workloads.js';

const full = { seconds: 2, warmUpSeconds: 2 };
const quick = { seconds: 1, warmUpSeconds: 1 };
const shares = [0.5, 0.8];
/** New tokens and proofs a second that are more than any server here can judge. */
const pace = 20_000;

/** @type {readonly (readonly [string, string])[]} */
const subjects = [
  ['portcullis', 'warm'],
  ['raw-floor', 'warm'],
  ['portcullis', 'cold'],
  ['portcullis', 'dpop'],
];

const pacer = fileURLToPath(new URL('pacer.js', import.meta.url));

/** Sends at a rate; what the pacer says. */
async function sendAt({ url, file, rate, seconds }) {
  const child = startChild([process.execPath, pacer, url, file, String(rate), String(seconds)], {
    processor: processors.load,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  const status = await child.ended;
  if (status !== 0) throw new Error(`the pacer ended with ${status}`);
  return JSON.parse(output);
}

async function measureSubject(/** @type {readonly [string, string]} */ [name, workload], { scene, settings, say }) {
  const running = await startServer(`pace-${name}`, servers[name], { scene, port: await findFreePort() });
  const { url, pid } = running;
  const once = workloads[workload].once === true;
  const write = async (part, count) => {
    const lines = await (workload === 'dpop' ? scene.makeProofs(count, url) : scene.makeBearer(once ? count : 1));
    return scene.write(`pace-${name}-${workload}-${part}.txt`, `${lines.join('\n')}\n`);
  };
  try {
    await load({
      pid,
      url,
      once,
      file: await write('warm-up', pace * settings.warmUpSeconds),
      seconds: settings.warmUpSeconds,
    });
    const closed = await load({ pid, url, once, file: await write('closed', pace), seconds: 1 });
    const rows = [];
    for (const share of shares) {
      const rate = Math.round(closed.rate * share);
      const file = await write(`open-${share}`, rate * settings.seconds);
      const found = await sendAt({ url, file, rate, seconds: settings.seconds });
      if (found.unexpected > 0) throw new Error(`${name}, ${workload}: ${found.unexpected} answers were not 200`);
      rows.push({
        name,
        workload,
        share,
        wanted: rate,
        closed: { p50: closed.p50 / 1000, p99: closed.p99 / 1000 },
        ...found,
      });
      say(`${workload} ${name} at ${rate}/s: p99 ${found.due.p99.toFixed(2)} ms`);
    }
    return rows;
  } finally {
    await running.stop();
  }
}

/** Prints a table; kept with `write`. */
export async function bench({ quick: isQuick, write }) {
  const settings = isQuick ? quick : full;
  const say = makeSay();
  const opened = await openScene();
  try {
    const scene = { ...opened, answers: await readAnswers(opened, await findFreePort()) };
    const rows = [];
    for (const subject of subjects) rows.push(...(await measureSubject(subject, { scene, settings, say })));
    const part = { date: new Date().toISOString(), settings, rows };
    console.log(`\n${formatPace(part)}\n`);
    if (write && !isQuick) savePart('pace', part);
    return true;
  } finally {
    await opened.close();
  }
}
