import { html, type View } from './view.ts';

/** Minimum number of common characters at both ends. */
const minCommon = 4;

interface Common {
  readonly start: number;
  readonly end: number;
}

/** Marks the difference between the seen value and the most similar expected one. */
export function markDifferences(
  seen: string,
  expected: readonly string[],
): { readonly seen: View | string; readonly expected: readonly (View | string)[] } {
  const compared = expected.map((value) => ({ value, common: findCommon(seen, value) }));
  const [nearest] = compared.toSorted((one, other) => sum(other.common) - sum(one.common));
  if (nearest === undefined || nearest.value === seen || sum(nearest.common) < minCommon) return { seen, expected };
  return {
    seen: mark(seen, nearest.common),
    expected: compared.map((each) => (each === nearest ? mark(each.value, each.common) : each.value)),
  };
}

function sum({ start, end }: Common): number {
  return start + end;
}

function findCommon(one: string, other: string): Common {
  const shorter = Math.min(one.length, other.length);
  let start = 0;
  while (start < shorter && one[start] === other[start]) start++;
  let end = 0;
  while (end < shorter - start && one.at(-1 - end) === other.at(-1 - end)) end++;
  return { start, end };
}

/** An empty mark shows the position of missing characters. */
function mark(text: string, { start, end }: Common): View {
  const until = text.length - end;
  return html`<span>${text.slice(0, start)}<mark>${text.slice(start, until)}</mark>${text.slice(until)}</span>`;
}
