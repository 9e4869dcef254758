// npm run faults [-- --quick] [-- --only NAME] [-- --write]: the service under constant load during faults. Exits with
// 1 if a decision was wrong, an accepted request got no response, a 5xx has no reason, or a bound was exceeded. --write
// also writes the table into docs/operations.md.
import { parseArgs } from 'node:util';
import { startLoad } from '../load/streams.js';
import { makeFolder } from '../shared/folder.js';
import { makeIdentity } from '../shared/identity.js';
import { writePart } from '../shared/page.js';
import { pinThis } from '../shared/processes.js';
import { openReference } from './reference.js';
import { namesOf, playRevocations, revocationNames } from './revocation.js';
import { playRow } from './row.js';
import { distinct, idle, incomplete, slow } from './rows-clients.js';
import { exchangeRows } from './rows-exchange.js';
import { gateRows } from './rows-gate.js';
import { headRows } from './rows-heads.js';
import { isolationRows } from './rows-isolation.js';
import { floodRows, keyRows } from './rows-keys.js';
import { lifecycleRows } from './rows-lifecycle.js';
import { processRows } from './rows-process.js';
import { providerRows } from './rows-provider.js';
import { redisRows } from './rows-redis.js';
import { streamRows } from './rows-streams.js';
import { formatHead, formatRow, formatTotal, titleOf } from './table.js';
import { makeKeys } from './tokens.js';

/** Seconds: the last row takes what is left of the first, and a run that is not done by the second is given up. */
const limits = { full: { aim: 1500, end: 2400 }, quick: { aim: 420, end: 900 } };
// The row that takes the time that is left comes last.
const rows = [
  ...processRows,
  ...redisRows,
  ...lifecycleRows,
  ...gateRows,
  ...exchangeRows,
  ...streamRows,
  ...headRows,
  ...isolationRows,
  incomplete,
  idle,
  ...floodRows,
  ...providerRows,
  ...keyRows,
  slow,
  distinct,
];

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
    write: { type: 'boolean', default: false },
  },
});
const { quick, only, write } = values;
/** Rows about revocations have two instances of their own, and follow the table. */
const prefix = 'revocation-';
const allNames = [...rows.map(({ name }) => name), ...revocationNames.map((name) => prefix + name)];
if (!only.every((name) => allNames.includes(name))) misuse(`There is no such row. Rows: ${allNames.join(', ')}.`);
if (write && (quick || only.length > 0)) misuse('Only a whole run is written into the documentation.');
const isChosen = (name) => only.length === 0 || only.includes(name);
process.exitCode = await main(
  rows.filter(({ name }) => isChosen(name)),
  only.length === 0 ? namesOf({ quick }) : revocationNames.filter((name) => isChosen(prefix + name)),
);

async function main(chosen, revocations) {
  const { aim, end } = quick ? limits.quick : limits.full;
  const startedAt = performance.now();
  const seconds = () => (performance.now() - startedAt) / 1000;
  setTimeout(() => giveUp(`not done after ${end} s`), end * 1000).unref();
  const folder = makeFolder('faults');
  const bench = {
    quick,
    folder,
    load: startLoad(),
    identity: await makeIdentity(folder),
    keys: await makeKeys(Math.max(1, ...chosen.map((row) => row.countKeys?.({ quick }) ?? 1))),
    secondsLeft: () => aim - seconds(),
  };
  pinThis(); // not before: keys are made by all processors
  const broken = chosen.length > 0 ? await playTable(chosen, { bench, seconds }) : 0;
  const brokenRevocations = await playRevocations(revocations, bench);
  await bench.load.end();
  return broken + brokenRevocations === 0 ? 0 : 1;
}

/** Plays the rows of the table. Resolves with the number of rows that were broken. */
async function playTable(chosen, { bench, seconds }) {
  const printed = [];
  const print = (text) => {
    printed.push(text);
    process.stdout.write(text);
  };
  const reference = await openReference(bench);
  let played = 0;
  let broken = 0;
  for (const row of chosen) {
    const title = titleOf(row, { quick });
    process.stderr.write(`${Math.round(seconds())} s, ${played + 1} of ${chosen.length}: ${title}\n`);
    const undisturbed = await reference.measure();
    if (played++ === 0) print(formatHead(undisturbed));
    const result = await playRow(row, bench, undisturbed);
    if (result.broken.length > 0) broken++;
    print(formatRow({ ...result, title }));
  }
  await reference.close();
  print(formatTotal({ rows: chosen.length, seconds: Math.round(seconds()), broken }));
  if (write) writePart('docs/operations.md', 'output: faults', printed.join(''));
  return broken;
}

function misuse(text) {
  process.stderr.write(`${text}\n`);
  process.exit(64);
}

function giveUp(text) {
  process.stderr.write(`The run is given up: ${text}.\n`);
  process.exit(1);
}
