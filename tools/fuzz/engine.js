import { mutate } from './mutate.js';

const batchSize = 256;
/** Every so many batches a few inputs are run one by one, so that another way through the same blocks is news too. */
const closeLook = 16;
/** Milliseconds: an input that takes longer, twice, is a finding. */
const slow = 500;

/**
 * Runs one target for N milliseconds. Inputs that cover a new block join the corpus. Coverage is read once for a batch,
 * because that costs as much as many runs; a batch with new coverage is halved until the input is found.
 */
export function fuzzTarget(target, { corpus, coverage, random, milliseconds }) {
  const kept = [];
  const findings = [];
  let runs = 0;

  const attempt = (input) => {
    runs++;
    const finding = runOnce(target, input);
    // One of each kind is enough to look at.
    if (finding !== undefined && !findings.some(({ kind }) => kind === finding.kind)) findings.push(finding);
  };
  const keepIfNews = (input) => {
    attempt(input);
    if (coverage.noteNews()) kept.push(input);
  };
  /** Runs a batch that is known, or not, to hold news. */
  const search = (batch) => {
    if (batch.length === 1) return keepIfNews(batch[0]);
    for (const input of batch) attempt(input);
    if (!coverage.hasNews()) return;
    search(batch.slice(0, batch.length >> 1));
    search(batch.slice(batch.length >> 1));
  };

  coverage.skip();
  for (const input of [...target.seeds, ...corpus]) keepIfNews(input);
  const until = performance.now() + milliseconds;
  for (let batches = 1; performance.now() < until; batches++) {
    const batch = Array.from({ length: batches % closeLook === 0 ? batchSize / closeLook : batchSize }, () => {
      const base = kept[random(kept.length)] ?? '';
      const other = kept[random(kept.length)] ?? '';
      return mutate(base, { random, words: target.words, other });
    });
    if (batches % closeLook === 0) for (const input of batch) keepIfNews(input);
    else search(batch);
  }
  return { runs, blocks: coverage.blocks, corpus: kept, findings };
}

/** Returns the defect of the result for one input; `undefined` if it is correct. */
function runOnce(target, input) {
  let startedAt = performance.now();
  try {
    target.run(input);
    if (performance.now() - startedAt < slow) return undefined;
    // Once more: it may have been the machine.
    startedAt = performance.now();
    target.run(input);
    return performance.now() - startedAt < slow ? undefined : { kind: 'slow', input };
  } catch (error) {
    // Two inputs that fail at one place are one finding.
    const at = /\n\s+at .*/.exec(String(error.stack))?.[0].trim() ?? '';
    return { kind: `${error.name} ${at}`, input, message: String(error.message) };
  }
}
