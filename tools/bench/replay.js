// npm run bench -- replay: the replay store in memory, filled: its memory, and the time of an insert and of a duplicate.
import { randomUUID } from 'node:crypto';
import { createMemoryReplayStore } from '../../build/core/dpop/replay.js';
import { median } from '../shared/statistics.js';

const batch = 1000;
const now = 1_000_000;
const windowSeconds = 300;
const jkts = Array.from({ length: batch }, () => randomUUID().padEnd(43, 'A'));
const createStore = () => createMemoryReplayStore({ now: () => now, since: 0 });
/** Built outside the measured time. */
const makeBatch = () => jkts.map((jkt) => ({ jkt, jti: randomUUID() }));

/** Witnesses proofs. Returns the nanoseconds of one. */
function measure(store, proofs, expected) {
  const started = process.hrtime.bigint();
  for (const [i, { jkt, jti }] of proofs.entries()) {
    if (store.witness(jkt, jti, now + (i % windowSeconds)) !== expected) throw new Error('wrong response');
  }
  return Number(process.hrtime.bigint() - started) / proofs.length;
}

/** Fills a store and prints its memory and the time of a witness; `quick` takes a tenth of the proofs. */
export async function bench({ quick }) {
  const warm = createStore();
  for (let i = 0; i < 100; i++) measure(warm, makeBatch(), true);
  const store = createStore();
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  const known = makeBatch();
  const inserts = Array.from({ length: quick ? 100 : 1000 }, (_, i) =>
    measure(store, i === 0 ? known : makeBatch(), true),
  );
  globalThis.gc?.();
  const mebibytes = (process.memoryUsage().rss - before) / 2 ** 20;
  const duplicates = Array.from({ length: 20 }, () => measure(store, known, false));
  console.log(
    `replay: ${store.size} live proofs in ${mebibytes.toFixed(0)} MiB; ` +
      `insert ${median(inserts).toFixed(0)} ns, duplicate ${median(duplicates).toFixed(0)} ns`,
  );
}
