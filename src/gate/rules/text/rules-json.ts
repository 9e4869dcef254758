import { parseJsonObject } from '../../../jose/json.ts';
import {
  createLocate,
  createPositionAt,
  type ParsedFile,
  type ParseResult,
  type Position,
  pathKey,
  type RulesProblem,
  type Step,
} from './rules-text.ts';

const maxDepth = 20;

/** Parses a rules file in JSON. A duplicate member is a problem, because the second would silently win. */
export function parseRulesJson(text: string): ParseResult {
  const positionAt = createPositionAt(text);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { kind: 'problems', problems: [describeSyntax(error, text, positionAt)] };
  }
  // Positions are computed only for a problem, because that takes longer than all other steps.
  let known: ParsedFile['locate'] | undefined;
  const locate: ParsedFile['locate'] = (path) => {
    known ??= createLocate(scan(text).offsets, positionAt);
    return known(path);
  };
  if (parseJsonObject(Buffer.from(text)) !== undefined) return { kind: 'text', text: { value, locate } };
  const { offsets, twice, tooDeep } = scan(text);
  if (tooDeep !== undefined) {
    return problems([
      { ...positionAt(tooDeep), message: `The file is nested more than ${maxDepth} deep. A rules file needs 5.` },
    ]);
  }
  if (twice.length > 0) {
    return problems(
      twice.map(({ name, offset }) => ({
        ...positionAt(offset),
        message: `"${name}" is a duplicate in this object. Keep one of the two.`,
      })),
    );
  }
  return { kind: 'text', text: { value, locate: createLocate(offsets, positionAt) } };
}

function problems(list: readonly RulesProblem[]): ParseResult {
  return { kind: 'problems', problems: list };
}

function describeSyntax(error: unknown, text: string, positionAt: (offset: number) => Position): RulesProblem {
  const message = error instanceof Error ? error.message : '';
  const position = /at position (\d+)/.exec(message)?.[1];
  const offset = position === undefined ? findEnd(text, message) : Number(position);
  return {
    ...positionAt(offset),
    message: 'This is not JSON. Check for an extra or missing comma, a comment, or a missing quotation mark.',
  };
}

/** Finds the position for a message that names only a character or the end. */
function findEnd(text: string, message: string): number {
  const [, token] = /Unexpected token '(.)'/.exec(message) ?? [];
  const found = token === undefined ? -1 : text.indexOf(token);
  return found < 0 ? text.trimEnd().length : found;
}

interface Scan {
  readonly offsets: Map<string, number>;
  readonly twice: { readonly name: string; readonly offset: number }[];
  tooDeep: number | undefined;
}

/** Records the offset of each member and item. Requires valid JSON. */
function scan(text: string): Scan {
  const found: Scan = { offsets: new Map(), twice: [], tooDeep: undefined };
  let at = 0;
  const skip = (): void => {
    while (/[\s,:]/.test(text.charAt(at)) && at < text.length) at++;
  };
  const readString = (): string => {
    const start = at++;
    while (text.charAt(at) !== '"') at += text.charAt(at) === '\\' ? 2 : 1;
    at++;
    return JSON.parse(text.slice(start, at)) as string; // it is a quoted string
  };
  const readValue = (path: readonly Step[]): void => {
    const first = text.charAt(at);
    if (first === '{' || first === '[') readMembers(path, first === '{');
    else if (first === '"') readString();
    else while (at < text.length && !/[\s,\]}]/.test(text.charAt(at))) at++;
  };
  const readMembers = (path: readonly Step[], isObject: boolean): void => {
    if (path.length >= maxDepth) {
      found.tooDeep ??= at;
      at = text.length; // stops the scan
    }
    const close = isObject ? '}' : ']';
    at++;
    for (let index = 0; ; index++) {
      skip();
      if (at >= text.length || text.charAt(at) === close) break;
      const offset = at;
      const step = isObject ? readString() : index;
      const own = [...path, step];
      if (found.offsets.has(pathKey(own))) found.twice.push({ name: String(step), offset });
      found.offsets.set(pathKey(own), offset);
      skip();
      readValue(own);
    }
    at++;
  };
  skip();
  readValue([]);
  return found;
}
