// How often the provider may be asked (docs/behaviour.md §4).
const freshSeconds = { least: 60, usual: 600, most: 3600 };
const refreshAhead = 0.8;
const throttleSeconds = 10;
const forcedAtOnce = 3;
const maxBackoffSeconds = 30;

/**
 * The most fetches that docs/behaviour.md allows in so many `seconds` from the start: the first, those ahead of need, with `forced` three and one in
 * ten seconds for unknown keys, and in each of `downs` (seconds) the retries at the shortest jitter and the one that
 * ends it; by each of so many `processes`.
 */
export function fetchBound({ seconds, maxAge = freshSeconds.usual, forced, downs, processes }) {
  const lifetime = Math.min(freshSeconds.most, Math.max(freshSeconds.least, maxAge));
  const ahead = Math.floor(seconds / (lifetime * refreshAhead));
  const unknown = forced ? forcedAtOnce + Math.floor(seconds / throttleSeconds) : 0;
  const retries = downs.reduce((sum, down) => sum + countRetries(down) + 1, 0);
  return processes * (1 + ahead + unknown + retries);
}

function countRetries(seconds) {
  let at = 0;
  for (let count = 1; ; count++) {
    at += Math.min(maxBackoffSeconds, 2 ** count) / 2;
    if (at > seconds) return count - 1;
  }
}
