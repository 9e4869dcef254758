import { parseJsonObject } from '../../jose/json.ts';
import {
  createLocate,
  createPlaceOf,
  type ParsedText,
  type Place,
  pathKey,
  type RulesProblem,
  type Step,
  type TextResult,
} from './rules-text.ts';

const maxDepth = 20;

/** Parses a rules file in JSON. A member that comes twice is a problem: the second would silently win. */
export function parseRulesJson(text: string): TextResult {
  const placeOf = createPlaceOf(text);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { kind: 'problems', problems: [describeSyntax(error, text, placeOf)] };
  }
  // Places are looked for only if there is something to say: that takes longer than all the rest.
  let known: ParsedText['locate'] | undefined;
  const locate: ParsedText['locate'] = (path) => {
    known ??= createLocate(scan(text).offsets, placeOf);
    return known(path);
  };
  if (parseJsonObject(Buffer.from(text)) !== undefined) return { kind: 'text', text: { value, locate } };
  const { offsets, twice, tooDeep } = scan(text);
  if (tooDeep !== undefined) {
    return problems([
      { ...placeOf(tooDeep), message: `The file is nested more than ${maxDepth} deep. A rules file needs 5.` },
    ]);
  }
  if (twice.length > 0) {
    return problems(
      twice.map(({ name, offset }) => ({
        ...placeOf(offset),
        message: `"${name}" stands here for the second time in one object. Keep one of the two.`,
      })),
    );
  }
  return { kind: 'text', text: { value, locate: createLocate(offsets, placeOf) } };
}

function problems(list: readonly RulesProblem[]): TextResult {
  return { kind: 'problems', problems: list };
}

/** V8 tells where it stopped, if not at the end. */
function describeSyntax(error: unknown, text: string, placeOf: (offset: number) => Place): RulesProblem {
  const message = error instanceof Error ? error.message : '';
  const position = /at position (\d+)/.exec(message)?.[1];
  const offset = position === undefined ? findEnd(text, message) : Number(position);
  return {
    ...placeOf(offset),
    message: 'This is not JSON. Look for a comma too many or missing, a comment, or a quotation mark that is missing.',
  };
}

/** Messages without a position name the character only, or the end of the text. */
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

/** Notes where each member and item begins. Sound for valid JSON only. */
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
    return JSON.parse(text.slice(start, at)) as string; // it stands in quotation marks
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
      at = text.length; // nothing else is looked at
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
