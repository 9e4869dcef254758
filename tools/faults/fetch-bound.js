// Maximum number of fetches from the provider (docs/behaviour.md §4).
const freshSeconds = { least: 60, usual: 600, most: 3600 };
const refreshAhead = 0.8;
const throttleSeconds = 10;
const forcedAtOnce = 3;
const maxBackoffSeconds = 30;

/**
 * Returns the maximum number of fetches that docs/behaviour.md allows in N `seconds` after the start: the first fetch,
 * the refreshes, with `forced` three and one in ten seconds for unknown keys, and in each of `downs` (seconds) the
 * retries with the shortest jitter and the one that ends it; for each of N `processes`.
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
