// The replay store in memory, filled: resident memory, and the time of an insert and of a duplicate.
import { randomUUID } from 'node:crypto';
import { createMemoryReplayStore } from '../../build/core/dpop/replay.js';
import { quantile } from '../shared/statistics.js';

const batch = 1_000;
const windowSeconds = 300;
const jkts = Array.from({ length: 1_000 }, () => randomUUID().padEnd(43, 'A'));

let clock = 1_000_000;
const createStore = () => createMemoryReplayStore({ now: () => clock, since: 0 });

/** Made outside the measured time. */
const makeBatch = () => jkts.map((jkt) => ({ jkt, jti: randomUUID() }));

/** Witnesses proofs; nanoseconds of one witness, on average, the clock's own cost included. */
const measure = (store, proofs, expected) => {
  const started = process.hrtime.bigint();
  for (const [i, { jkt, jti }] of proofs.entries()) {
    if (store.witness(jkt, jti, clock + (i % windowSeconds)) !== expected) throw new Error('wrong answer');
  }
  return Number(process.hrtime.bigint() - started) / proofs.length;
};

const repeat = (times, action) => Array.from({ length: times }, action);
const summarise = (measured, samples) => {
  const sorted = samples.toSorted((a, b) => a - b);
  const [median, p99, worst] = [0.5, 0.99, 1].map((share) => Math.round(quantile(sorted, share)));
  return { measured, median, p99, worst };
};

/** Fills a store and prints what it holds and what a witness costs; `quick` takes a tenth of the proofs. */
export async function bench({ quick }) {
  const entries = quick ? 100_000 : 1_000_000;
  const warm = createStore();
  repeat(100, () => measure(warm, makeBatch(), true));

  const store = createStore();
  globalThis.gc?.();
  const before = process.memoryUsage();
  const sample = [];
  const inserts = repeat(entries / batch, (_, index) => {
    const proofs = makeBatch();
    if (index % 100 === 0) sample.push(proofs);
    return measure(store, proofs, true);
  });
  globalThis.gc?.();
  const after = process.memoryUsage();
  const held = store.size;
  const duplicates = repeat(20, () => sample.map((proofs) => measure(store, proofs, false))).flat();
  const single = repeat(100, () => makeBatch().map((proof) => measure(store, [proof], true))).flat();

  // Everything dies at once; the store reclaims as it goes.
  clock += 2 * windowSeconds;
  const reclaiming = repeat(500, () => measure(store, makeBatch(), true));

  console.log(`replay: ${held} live proofs; MiB above the start`);
  const row = (memory, field) => ({ memory, MiB: ((after[field] - before[field]) / 2 ** 20).toFixed(1) });
  console.table([row('resident', 'rss'), row('heap', 'heapUsed')]);
  console.log(`nanoseconds of one witness (batches of ${batch}, except single ones)`);
  console.table([
    summarise('insert, while filling', inserts),
    summarise('duplicate', duplicates),
    summarise('insert, each by itself', single),
    summarise('insert, while all the rest is dead', reclaiming),
  ]);
}
