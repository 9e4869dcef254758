const maxDistance = 2;
/** Two letters of five are another word. */
const lettersPerMistake = 3;

/** Returns the most similar name, case apart: at most two mistakes, one per three letters. Ignores shorter ones. */
export function findLikeliest(name: string, names: Iterable<string>, leastLength: number): string | undefined {
  let likeliest: string | undefined;
  let least = maxDistance + 1;
  for (const each of names) {
    if (each.length < leastLength) continue;
    const distance = measureDistance(name.toUpperCase(), each.toUpperCase());
    if (distance >= least || distance > Math.floor(each.length / lettersPerMistake)) continue;
    least = distance;
    likeliest = each;
  }
  return likeliest;
}

/** Letters to be put in, left out, changed, or swapped with the next; not exact beyond the distance that matters. */
function measureDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > maxDistance) return maxDistance + 1;
  let before: readonly number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = i > 1 && j > 1 && isSwapped ? (before[j - 2] ?? 0) + 1 : change;
      next.push(Math.min(change, swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 0;
}
