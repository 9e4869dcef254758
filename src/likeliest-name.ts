const maxDistance = 2;

/** The name that another is nearly: at most two letters away, case apart. Names of fewer letters are not looked at. */
export function findLikeliest(name: string, names: Iterable<string>, leastLength: number): string | undefined {
  let likeliest: string | undefined;
  let least = maxDistance + 1;
  for (const each of names) {
    if (each.length < leastLength) continue;
    const distance = measureDistance(name.toUpperCase(), each.toUpperCase());
    if (distance >= least) continue;
    least = distance;
    likeliest = each;
  }
  return likeliest;
}

/** Letters to be put in, left out or changed (Levenshtein); not exact beyond the distance that matters. */
function measureDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > maxDistance) return maxDistance + 1;
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
