const characters = '\0 \t\n"\\,./%=:@[]{}#?\ufeff\ud800é-_0';
const interesting = ['', ...characters, ...'.. // %2e %2F 1e400 -1 9007199254740993 null true [] {} none'.split(' ')];
const maxLength = 4096;
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

/**
 * Changes a string at one to four positions, with words of the target and with parts of another string of the corpus.
 */
function mutate(text, { random, words, other }) {
  let changed = text;
  for (let times = 1 + random(4); times > 0; times--) changed = changeOnce(changed, { random, words, other });
  return changed.slice(0, maxLength);
}

function changeOnce(text, { random, words, other }) {
  const at = random(text.length + 1);
  const end = Math.min(text.length, at + 1 + random(8));
  const pick = (list) => list[random(list.length)];
  switch (random(9)) {
    case 0:
      return text.slice(0, at) + String.fromCharCode(random(256)) + text.slice(at + 1);
    case 1:
      return text.slice(0, at) + text.slice(end);
    case 2:
      return text.slice(0, at) + pick(interesting) + text.slice(at);
    case 3:
      return text.slice(0, at) + pick(words) + text.slice(random(2) === 0 ? at : end);
    case 4:
      return text.slice(0, end) + text.slice(at, end).repeat(1 + random(16)) + text.slice(end);
    case 5:
      return text.slice(0, at) + other.slice(random(other.length + 1));
    case 6: {
      const code = text.charCodeAt(at) || 0;
      return text.slice(0, at) + String.fromCharCode(code ^ (1 << random(8))) + text.slice(at + 1);
    }
    case 7:
      return text.slice(0, at) + other.slice(0, random(other.length + 1)) + text.slice(end);
    default:
      return text.slice(0, at) + pick(interesting) + text.slice(end);
  }
}
