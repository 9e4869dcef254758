import * as yaml from 'yaml';
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
export type Path = readonly Step[];

export interface RulesProblem extends Position {
  readonly message: string;
}

export type Report = (position: Position, message: string) => void;

export type ReportProblem = (path: Path, message: string) => void;

export interface RulesText {
  /** `.yaml` and `.yml` are YAML, all others JSON. */
  readonly name: string;
  readonly text: string;
}

export type ParsedFile = NonNullable<ReturnType<typeof parseRulesText>>;

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
export function parseRulesText({ name, text }: RulesText, report: Report) {
  const read: ReturnType<typeof readJson> = /\.ya?ml$/i.test(name) ? {} : readJson(text);
  // Valid JSON is read by the parser of tokens, and by `yaml` only for positions: that takes 30 times as long.
  let composed = 'value' in read ? undefined : compose(text);
  const composeOnce = () => {
    composed ??= compose(text);
    return composed;
  };
  const flaws = read.flaw === undefined ? (composed?.flaws ?? []) : [read.flaw];
  for (const { offset, message } of flaws) report(positionAt(composeOnce().lines, offset), message);
  if (flaws.length > 0) return undefined;
  return {
    value: ('value' in read ? read.value : composed?.document?.toJS({ maxAliasCount: 0 })) as unknown,
    /** Returns the position of a path, or of its nearest enclosing path. */
    locate: (path: Path): Position => locate(composeOnce(), path),
  };
}

/** Reads JSON: its value, its syntax error, or neither if other rules are violated. */
function readJson(text: string): { readonly value?: unknown; readonly flaw?: Flaw } {
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

type Composed = Readonly<{ lines: yaml.LineCounter; document?: yaml.Document; flaws: readonly Flaw[] }>;

/** Parses YAML, and JSON as YAML. */
function compose(text: string): Composed {
  const lines = new yaml.LineCounter();
  const tokens = [...new yaml.Parser(lines.addNewLine).parse(text)];
  // The composer is recursive: without a limit, a deep file ends the process.
  const deep = tokens.map((token) => findDeep(token, 0)).find((token) => token !== undefined);
  if (deep !== undefined) return { lines, flaws: [{ offset: deep.offset, message: tooDeep }] };
  const composer = new yaml.Composer({ strict: true, uniqueKeys: false, stringKeys: true, schema: 'core' });
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
  return { lines, document, flaws: [...flaws, ...findFlaws(document)] };
}

/** Finds a collection in too many others. */
function findDeep(token: yaml.CST.Token | undefined, depth: number): yaml.CST.Token | undefined {
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

/** Finds what a rules file must not have: anchors, aliases, tags, inexact numbers and duplicate members. */
function findFlaws(document: yaml.Document): readonly Flaw[] {
  const flaws: Flaw[] = [];
  const reject = (node: unknown, message: string): void => void flaws.push({ offset: offsetOf(node), message });
  yaml.visit(document, (_, node) => {
    if (!yaml.isNode(node)) return;
    if (yaml.isAlias(node)) reject(node, 'Aliases (*name) are not accepted. Write the value.');
    else if (node.anchor !== undefined) {
      reject(node, 'Anchors (&name) are not accepted. Write the value in each location.');
    }
    if (node.tag !== undefined) reject(node, 'Tags (!name) are not accepted. Write the plain value.');
    if (yaml.isScalar(node) && typeof node.value === 'number' && isInexact(node.source ?? ''))
      reject(node, inexactNumber);
    const names = new Set<string>();
    for (const { key } of yaml.isMap(node) ? node.items : []) {
      const name = String(key);
      if (names.has(name)) reject(key, `"${name}" is a duplicate in this object. Keep one of the two.`);
      names.add(name);
    }
  });
  return flaws;
}

function locate({ document, lines }: Composed, path: Path): Position {
  let node: unknown = document?.contents;
  let offset = 0;
  for (const step of path) {
    const pair = yaml.isMap(node) ? node.items.find(({ key }) => String(key) === String(step)) : undefined;
    const item: unknown = yaml.isSeq(node) ? node.items[Number(step)] : undefined;
    const place = pair?.key ?? item;
    if (place === undefined) break;
    offset = offsetOf(place);
    node = pair === undefined ? item : pair.value;
  }
  return positionAt(lines, offset);
}

function offsetOf(node: unknown): number {
  return yaml.isNode(node) ? (node.range?.[0] ?? 0) : 0;
}

function positionAt(lines: yaml.LineCounter, offset: number): Position {
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
