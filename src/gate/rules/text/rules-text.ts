/** Position in a file; both numbers begin with 1. */
export interface Position {
  /** Present if the rules have several files. */
  readonly file?: string;
  readonly line: number;
  readonly column: number;
}

/** A step into a document: the name of a member or the index of an item. */
export type Step = string | number;

export interface RulesProblem extends Position {
  readonly message: string;
}

export type Report = (position: Position, message: string) => void;

export type ReportProblem = (path: readonly Step[], message: string) => void;

export interface ParsedFile {
  readonly value: unknown;
  /** Returns the position of a path, or of its nearest enclosing path. */
  locate(path: readonly Step[]): Position;
}

export const inexactNumber =
  'A number cannot hold this value exactly. Write at most 17 digits below 2^53, or a string in quotation marks.';

export function pathKey(path: readonly Step[]): string {
  return JSON.stringify(path);
}

export function createPositionAt(text: string): (offset: number) => Position {
  const starts = [0, ...Array.from(text.matchAll(/\n/g), ({ index }) => index + 1)];
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

/** Creates {@link ParsedFile.locate}. The offsets of paths are read when they are first used. */
export function createLocate(
  readOffsets: () => ReadonlyMap<string, number>,
  positionAt: (offset: number) => Position,
): ParsedFile['locate'] {
  return (path) => {
    const offsets = readOffsets();
    for (let length = path.length; length > 0; length--) {
      const offset = offsets.get(pathKey(path.slice(0, length)));
      if (offset !== undefined) return positionAt(offset);
    }
    return positionAt(0);
  };
}

/** Formats one line per problem, in the format of compilers. */
export function formatRulesProblems(name: string, problems: readonly RulesProblem[]): string {
  const sorted = problems.toSorted(
    (a, b) => (a.file ?? '').localeCompare(b.file ?? '') || a.line - b.line || a.column - b.column,
  );
  return sorted.map(({ file = name, line, column, message }) => `${file}:${line}:${column}: ${message}\n`).join('');
}
