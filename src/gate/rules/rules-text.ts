/** Where something stands in a file; both begin with 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** A step into a document: the name of a member or the index of an item. */
export type Step = string | number;

/** Something wrong in a file. */
export interface RulesProblem extends Place {
  /** What is wrong, and what to write. */
  readonly message: string;
}

/** A parsed text: its value, and where each part of it stands. */
export interface ParsedText {
  readonly value: unknown;
  /** The place of a part, or of the nearest part around it that is there. */
  locate(path: readonly Step[]): Place;
}

/** A parsed text, or what is wrong with it as a text. */
export type TextResult =
  | { readonly kind: 'text'; readonly text: ParsedText }
  | { readonly kind: 'problems'; readonly problems: readonly RulesProblem[] };

/** How a path is kept. */
export function pathKey(path: readonly Step[]): string {
  return JSON.stringify(path);
}

/** Finds lines and columns of offsets into a text. */
export function createPlaceOf(text: string): (offset: number) => Place {
  const starts = [0];
  for (let i = text.indexOf('\n'); i >= 0; i = text.indexOf('\n', i + 1)) starts.push(i + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
  };
}

/** Looks a path up among the offsets that are known, or else the nearest path around it. */
export function createLocate(
  offsets: ReadonlyMap<string, number>,
  placeOf: (offset: number) => Place,
): ParsedText['locate'] {
  return (path) => {
    for (let length = path.length; length > 0; length--) {
      const offset = offsets.get(pathKey(path.slice(0, length)));
      if (offset !== undefined) return placeOf(offset);
    }
    return placeOf(0);
  };
}

/** A line for each problem, as compilers write them. */
export function formatRulesProblems(name: string, problems: readonly RulesProblem[]): string {
  const sorted = problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
  return sorted.map(({ line, column, message }) => `${name}:${line}:${column}: ${message}\n`).join('');
}
