// npm run soak [-- --minutes N]: a service at 70 % of its capacity. The provider rotates its key every minute. Prints the
// slope of the resident memory; exits with 1 if a decision was wrong, a request that was read got no response, a 5xx has no reason, or
// memory kept growing.
import { parseArgs } from 'node:util';
import { startLoad } from '../load/streams.js';
import { makeFolder } from '../shared/folder.js';
import { makeIdentity } from '../shared/identity.js';
import { pinThis } from '../shared/processes.js';
import { openScene } from './scene.js';
import { makeKeys, mint, steadyKinds } from './tokens.js';

const share = 0.7;
const connections = 64;
/** Seconds between two samples of the memory. */
const sampleSeconds = 5;
/** Share of the run in which heaps find their size; nothing is concluded from it. */
const warmShare = 0.2;
/** A rise over the whole run that is more than this share of the memory is a leak. Short runs are over too soon to tell. */
const maxRise = 0.1;
const leastMinutes = 30;

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '60' } } });
const minutes = Number(values.minutes);
if (!(Number.isInteger(minutes) && minutes >= 1 && minutes <= 600)) {
  process.stderr.write('Write a whole number of minutes from 1 to 600: npm run soak -- --minutes 60\n');
  process.exit(64);
}
process.exitCode = await main();

async function main() {
  const folder = makeFolder('soak');
  const load = startLoad();
  // The last is never published before its minute: a call with it makes the service look for it.
  const keys = await makeKeys(minutes + 1);
  const bench = { quick: false, folder, load, identity: await makeIdentity(folder), keys };
  pinThis();
  const scene = await openScene(bench, { maxAge: 60 });
  const startedAt = performance.now();
  const seconds = () => (performance.now() - startedAt) / 1000;
  const rate = Math.max(1, Math.round((await measureCapacity(scene)) * share));
  print(`${minutes} minutes at ${rate} requests a second`);

  const samples = [];
  const sampling = setInterval(() => {
    samples.push({ at: seconds(), memory: scene.service.memory() });
  }, sampleSeconds * 1000);

  const total = { sent: 0, answered: 0, cut: 0, lost: 0, dropped: 0, wrong: {}, unexplained: {} };
  const problems = [];
  let before;
  for (let minute = 0; minute < minutes; minute++) {
    const endsAt = performance.now() + 60_000;
    // Each new key withdraws an old one, whose tokens must then be refused.
    const [withdrawn, , current] = [minute - 2, minute - 1, minute].map((index) => keys[index]);
    scene.provider.publish(keys.slice(Math.max(0, minute - 1), minute + 1));
    const token = mint(current, scene.issuer);
    if (!(await scene.awaitStatus(token, 200, 15))) problems.push(`minute ${minute}: the new key was not found`);
    const kinds = steadyKinds(current, scene.issuer);
    if (withdrawn !== undefined) {
      const tokens = [mint(withdrawn, scene.issuer)];
      kinds.push({
        name: 'withdrawn',
        weight: 2,
        expect: [401],
        source: { type: 'fixed', path: '/api/private', tokens },
      });
    }
    const stream = `minute ${minute}`;
    await scene.send(stream, { rate, connections, kinds });
    if (before !== undefined) add(total, await scene.stopStream(before));
    before = stream;
    await scene.sleep(Math.max(0, endsAt - performance.now()) / 1000);
    const { answered } = await load.state(stream);
    const memory = scene.service.memory();
    print(`${minute + 1} min: ${answered} responses, ${memory.toFixed(0)} MiB, ${count(total.wrong)} wrong so far`);
  }
  add(total, await scene.stopStream(before));
  clearInterval(sampling);
  const { slope, rise, mean } = measureSlope(samples.filter(({ at }) => at > minutes * 60 * warmShare));
  await scene.close();
  await load.end();

  if (count(total.wrong) > 0) problems.push(`wrong decisions: ${JSON.stringify(total.wrong)}`);
  if (total.lost > 0) problems.push(`${total.lost} requests got no response`);
  if (count(total.unexplained) > 0) problems.push(`unexplained: ${JSON.stringify(total.unexplained)}`);
  if (minutes >= leastMinutes && rise > mean * maxRise) problems.push(`memory rose by ${rise.toFixed(0)} MiB`);
  print(`
sent                  ${total.sent}
wrong                 ${count(total.wrong)}
unanswered            ${total.lost}
5xx without a reason  ${count(total.unexplained)}
repeated              ${total.cut} (the service closed the connection unread)
resident memory       ${mean.toFixed(0)} MiB, slope ${slope.toFixed(2)} MiB an hour
${problems.length === 0 ? 'nothing was broken' : `BROKEN: ${problems.join('; ')}`}`);
  return problems.length === 0 ? 0 : 1;
}

/** Measures the maximum number of responses a second. */
async function measureCapacity(scene) {
  await scene.send('full', { connections, kinds: scene.usual });
  await scene.sleep(2);
  const [first, from] = [await scene.load.state('full'), performance.now()];
  await scene.sleep(5);
  const [last, to] = [await scene.load.state('full'), performance.now()];
  await scene.stopStream('full');
  return ((last.answered - first.answered) / (to - from)) * 1000;
}

function add(total, report) {
  for (const name of ['sent', 'answered', 'cut', 'lost', 'dropped']) total[name] += report[name];
  for (const name of ['wrong', 'unexplained']) {
    for (const [what, times] of Object.entries(report[name])) total[name][what] = (total[name][what] ?? 0) + times;
  }
}

function count(times) {
  return Object.values(times).reduce((sum, each) => sum + each, 0);
}

/** The least-squares line through the samples: MiB an hour, MiB over the whole of them, and their mean. */
function measureSlope(samples) {
  const mean = (read) => samples.reduce((sum, sample) => sum + read(sample), 0) / samples.length;
  const [at, memory] = [mean((sample) => sample.at), mean((sample) => sample.memory)];
  const above = samples.reduce((sum, sample) => sum + (sample.at - at) * (sample.memory - memory), 0);
  const below = samples.reduce((sum, sample) => sum + (sample.at - at) ** 2, 0);
  const perSecond = below === 0 ? 0 : above / below;
  const length = (samples.at(-1)?.at ?? 0) - (samples[0]?.at ?? 0);
  return { slope: perSecond * 3600, rise: perSecond * length, mean: memory };
}

function print(text) {
  process.stdout.write(`${text}\n`);
}
