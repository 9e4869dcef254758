import { findInexact, parseJsonObject } from '../../../core/jose/json.ts';
import {
  createLocate,
  createPositionAt,
  inexactNumber,
  type ParsedFile,
  pathKey,
  type Report,
  type Step,
} from './rules-text.ts';

const maxDepth = 20;

/** Parses a rules file in JSON. A duplicate member is a problem, because the second would silently win. */
export function parseRulesJson(text: string, report: Report): ParsedFile | undefined {
  const positionAt = createPositionAt(text);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const fix = 'Check for an extra or missing comma, a comment, or a missing quotation mark.';
    report(positionAt(findSyntaxError(error, text)), `This is not JSON. ${fix}`);
    return undefined;
  }
  const inexact = findInexact(text);
  for (const offset of inexact) report(positionAt(offset), inexactNumber);
  if (inexact.length > 0) return undefined;
  // Positions are computed only for a problem, because that takes longer than all other steps.
  let scanned: Scan | undefined;
  const scanOnce = (): Scan => {
    scanned ??= scan(text);
    return scanned;
  };
  const parsed = { value, locate: createLocate(() => scanOnce().offsets, positionAt) };
  if (parseJsonObject(Buffer.from(text)) !== undefined) return parsed;
  const { twice, tooDeep } = scanOnce();
  if (tooDeep !== undefined) {
    report(positionAt(tooDeep), `The file is nested more than ${maxDepth} deep. A rules file needs 5.`);
    return undefined;
  }
  for (const { name, offset } of twice) {
    report(positionAt(offset), `"${name}" is a duplicate in this object. Keep one of the two.`);
  }
  return twice.length > 0 ? undefined : parsed;
}

/** Finds the offset of a syntax error. Some messages name only a character or the end. */
function findSyntaxError(error: unknown, text: string): number {
  const message = error instanceof Error ? error.message : '';
  const [, position] = /at position (\d+)/.exec(message) ?? [];
  if (position !== undefined) return Number(position);
  const [, token] = /Unexpected token '(.)'/.exec(message) ?? [];
  const found = token === undefined ? -1 : text.indexOf(token);
  return found < 0 ? text.trimEnd().length : found;
}

interface Scan {
  /** Offsets of members and items, by {@link pathKey}. */
  readonly offsets: Map<string, number>;
  readonly twice: { readonly name: string; readonly offset: number }[];
  tooDeep?: number;
}

/** An open object or array. */
interface Level {
  readonly path: readonly Step[];
  readonly isObject: boolean;
  /** Name of the member whose value follows, or index of the next item. */
  next: Step | undefined;
}

const tokens = /"(?:[^"\\]|\\.)*"|[{}[\]]|[^\s,:"{}[\]]+/g;

/** Records the offset of each member and item. Requires valid JSON. */
function scan(text: string): Scan {
  const found: Scan = { offsets: new Map(), twice: [] };
  const levels: Level[] = [];
  for (const { 0: token, index: offset } of text.matchAll(tokens)) {
    const level = levels.at(-1);
    if (token === '}' || token === ']') {
      levels.pop();
      continue;
    }
    const isName = level?.isObject === true && level.next === undefined;
    if (isName) level.next = JSON.parse(token) as string; // a name is a string
    const path = level?.next === undefined ? [] : [...level.path, level.next];
    if (isName || level?.isObject === false) {
      if (found.offsets.has(pathKey(path))) found.twice.push({ name: String(path.at(-1)), offset });
      found.offsets.set(pathKey(path), offset);
    }
    if (isName) continue;
    if (level !== undefined) level.next = typeof level.next === 'number' ? level.next + 1 : undefined;
    if (token !== '{' && token !== '[') continue;
    if (levels.length >= maxDepth) return { ...found, tooDeep: offset };
    levels.push({ path, isObject: token === '{', next: token === '{' ? undefined : 0 });
  }
  return found;
}
