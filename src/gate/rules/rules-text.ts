import { Composer, type CST, type Document, isAlias, isMap, isNode, isScalar, isSeq, LineCounter, Parser } from 'yaml';
import { findInexact, isInexact, parseJsonComposite } from '../../core/jose/json.ts';

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

/** A problem in the text of a file. */
interface Flaw {
  readonly offset: number;
  readonly message: string;
}

const maxDepth = 20;
const tooDeep = `The file is nested more than ${maxDepth} deep. A rules file needs 5.`;
const inexactNumber =
  'A number cannot hold this value exactly. Write at most 17 digits below 2^53, or a string in quotation marks.';
const notJson = 'This is not JSON. Check for an extra or missing comma, a comment, or a missing quotation mark.';

/**
 * Parses a rules file: JSON, or YAML 1.2 with one document and without anchors, aliases and tags. Each has unique members and exact
 * numbers.
 */
export function parseRulesText(text: string, form: 'json' | 'yaml', report: Report): ParsedFile | undefined {
  const read = readJson(text, form);
  // Valid JSON is read by the parser of tokens, and by `yaml` only for positions: that takes 30 times as long.
  let composed = 'value' in read ? undefined : compose(text);
  const composeOnce = () => {
    composed ??= compose(text);
    return composed;
  };
  const flaws = 'flaw' in read ? [read.flaw] : (composed?.flaws ?? []);
  for (const { offset, message } of flaws) report(positionAt(composeOnce().lines, offset), message);
  if (flaws.length > 0) return undefined;
  return {
    value: 'value' in read ? read.value : composed?.document?.toJS({ maxAliasCount: 0 }),
    locate: (path) => locate(composeOnce(), path),
  };
}

/** Reads JSON: its value, its syntax error, or neither if other rules are violated. */
function readJson(text: string, form: 'json' | 'yaml'): { readonly value: unknown } | { readonly flaw: Flaw } | object {
  if (form === 'yaml') return {};
  try {
    JSON.parse(text);
  } catch (error) {
    return { flaw: { offset: findSyntaxError(error, text), message: notJson } };
  }
  const value = findInexact(text).length === 0 ? parseJsonComposite(Buffer.from(text), maxDepth) : undefined;
  return value === undefined ? {} : { value };
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

interface Composed {
  readonly lines: LineCounter;
  readonly document?: Document | undefined;
  readonly flaws: readonly Flaw[];
}

/** Parses YAML, and JSON as YAML. */
function compose(text: string): Composed {
  const lines = new LineCounter();
  const tokens = [...new Parser(lines.addNewLine).parse(text)];
  // The composer is recursive: without a limit, a deep file ends the process.
  const deep = tokens.map((token) => findDeep(token, 0)).find((token) => token !== undefined);
  if (deep !== undefined) return { lines, flaws: [{ offset: deep.offset, message: tooDeep }] };
  const composer = new Composer({ strict: true, uniqueKeys: false, stringKeys: true, schema: 'core' });
  const [document, second] = [...composer.compose(tokens)];
  if (document === undefined) {
    return { lines, flaws: [{ offset: 0, message: 'The file is empty. Write an object with "rules".' }] };
  }
  if (second !== undefined) {
    const message = 'The file has more than one document. Keep one, without ---.';
    return { lines, flaws: [{ offset: second.range[0], message }] };
  }
  const flaws = [...document.errors, ...document.warnings].map(({ message, pos }) => ({
    offset: pos[0],
    message: `This is not valid YAML: ${message}. Correct it, or write the rules in JSON.`,
  }));
  findFlaws(document.contents, flaws);
  return { lines, document, flaws };
}

/** Finds a collection in too many others. */
function findDeep(token: CST.Token | undefined, depth: number): CST.Token | undefined {
  if (token === undefined) return undefined;
  if (token.type === 'document') return findDeep(token.value, depth);
  if (!('items' in token)) return undefined;
  if (depth >= maxDepth) return token;
  for (const { key, value } of token.items) {
    const found = findDeep(key ?? undefined, depth + 1) ?? findDeep(value, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Adds what a rules file must not have: anchors, aliases, tags, inexact numbers and duplicate members. */
function findFlaws(node: unknown, flaws: Flaw[]): void {
  if (!isNode(node)) return;
  const offset = node.range?.[0] ?? 0;
  const reject = (message: string): void => void flaws.push({ offset, message });
  if (isAlias(node)) reject('Aliases (*name) are not accepted. Write the value.');
  else if (node.anchor !== undefined) reject('Anchors (&name) are not accepted. Write the value in each location.');
  if (node.tag !== undefined) reject('Tags (!name) are not accepted. Write the plain value.');
  if (isScalar(node) && typeof node.value === 'number' && isInexact(node.source ?? '')) reject(inexactNumber);
  if (isSeq(node)) for (const item of node.items) findFlaws(item, flaws);
  if (!isMap(node)) return;
  const names = new Set<string>();
  for (const { key, value } of node.items) {
    const name = String(key);
    if (names.has(name)) {
      flaws.push({ offset: offsetOf(key), message: `"${name}" is a duplicate in this object. Keep one of the two.` });
    }
    names.add(name);
    findFlaws(key, flaws);
    findFlaws(value, flaws);
  }
}

function locate({ document, lines }: Composed, path: readonly Step[]): Position {
  let node: unknown = document?.contents;
  let offset = 0;
  for (const step of path) {
    const pair = isMap(node) ? node.items.find(({ key }) => String(key) === String(step)) : undefined;
    const item: unknown = isSeq(node) ? node.items[Number(step)] : undefined;
    const place = pair?.key ?? item;
    if (place === undefined) break;
    offset = offsetOf(place);
    node = pair === undefined ? item : pair.value;
  }
  return positionAt(lines, offset);
}

function offsetOf(node: unknown): number {
  return isNode(node) ? (node.range?.[0] ?? 0) : 0;
}

function positionAt(lines: LineCounter, offset: number): Position {
  const { line, col } = lines.linePos(offset);
  return { line, column: col };
}

/** Formats one line per problem, in the format of compilers. */
export function formatRulesProblems(name: string, problems: readonly RulesProblem[]): string {
  const sorted = problems.toSorted(
    (a, b) => (a.file ?? '').localeCompare(b.file ?? '') || a.line - b.line || a.column - b.column,
  );
  return sorted.map(({ file = name, line, column, message }) => `${file}:${line}:${column}: ${message}\n`).join('');
}
