import * as v from 'valibot';
import { isJsonObject } from '../../core/jose/json.ts';
import type { AssertionKeyFiles } from '../identity/assertion-keys.ts';
import { readRulePath } from '../match/rule-pattern.ts';
import type { Rules } from '../match/rules.ts';
import { compileRules } from './rules-compilation.ts';
import { checkForm } from './rules-form.ts';
import type { RulesPart } from './rules-set.ts';
import {
  type ParsedFile,
  type Position,
  parseRulesText,
  type Report,
  type RulesProblem,
  type Step,
} from './rules-text.ts';
import { rulesSchema } from './schema/rules-schema.ts';

export interface RulesFile {
  /** `.yaml` and `.yml` are YAML, all others JSON. */
  readonly name: string;
  readonly text: string;
  /** Files of a folder, in the order of their names; `text` is empty then. */
  readonly files?: readonly RulesFile[];
  /** Keys of assertions; absent if no setting names one. */
  readonly keys?: AssertionKeyFiles | undefined;
}

export type RulesResult =
  | { readonly kind: 'rules'; readonly rules: Rules }
  | { readonly kind: 'problems'; readonly problems: readonly RulesProblem[] };

const maxLength = 16 * 1024 * 1024;

/** Reads the rules of a file, or of a set. Returns either all rules or all problems. */
export function readRules(file: RulesFile): RulesResult {
  const problems: RulesProblem[] = [];
  const report: Report = (position, message) => void problems.push({ ...position, message });
  const parts = readParts(file, report);
  const rules = problems.length === 0 ? compileRules(parts, report) : undefined;
  return rules === undefined ? { kind: 'problems', problems } : { kind: 'rules', rules };
}

/** Reads the documents of a file, or of a set. Documents with problems are omitted. */
export function readParts({ files, ...single }: RulesFile, report: Report): readonly RulesPart[] {
  const parts: RulesPart[] = [];
  for (const file of files ?? [single]) {
    const place = (position: Position): Position => (files === undefined ? position : { ...position, file: file.name });
    const reportHere: Report = (position, message) => report(place(position), message);
    const parsed = parseRulesFile(file, reportHere);
    if (parsed === undefined) continue;
    const form = checkForm(parsed, reportHere);
    if (form.document === undefined) reportFurther(parsed, form.wrong, reportHere);
    else parts.push({ document: form.document, locate: (path) => place(parsed.locate(path)) });
  }
  return parts;
}

export function parseRulesFile({ name, text }: RulesFile, report: Report): ParsedFile | undefined {
  if (text.length > maxLength) {
    const message = `The file has more than ${maxLength} characters. Write fewer rules with * and **.`;
    report({ line: 1, column: 1 }, message);
    return undefined;
  }
  const plain = text.startsWith('\uFEFF') ? text.slice(1) : text;
  return parseRulesText(plain, /\.ya?ml$/i.test(name) ? 'yaml' : 'json', report);
}

/**
 * Reports further problems of a document with an invalid form, so that one run lists every problem. Problems that an invalid
 * part could cause are omitted.
 */
function reportFurther({ value, locate }: ParsedFile, wrong: readonly (readonly Step[])[], report: Report): void {
  // Any other top-level member may be a misspelt "issuers".
  const isInParts = wrong.every(([top, next]) => /^(?:rules|issuers)$/.test(`${top}`) && next !== undefined);
  if (!isJsonObject(value) || !isInParts || !Array.isArray(value['rules'])) return;
  const rules: readonly unknown[] = value['rules'];
  const wrongIndexes = new Set(wrong.flatMap(([top, index]) => (top === 'rules' ? [Number(index)] : [])));
  const reported = new Set(wrong.flatMap(([, at, member = 'path']) => (member === 'path' ? [Number(at)] : [])));
  for (const index of wrongIndexes) {
    const rule = rules[index];
    const path = isJsonObject(rule) ? rule['path'] : undefined;
    const message = reported.has(index) || typeof path !== 'string' ? undefined : readRulePath(path);
    if (typeof message === 'string') report(locate(['rules', index, 'path']), message);
  }
  const soundIndexes = [...rules.keys()].filter((index) => !wrongIndexes.has(index));
  const document = v.safeParse(rulesSchema, {
    ...value,
    ...(isJsonObject(value['issuers']) && { issuers: { ...value['issuers'], ...createStandIns(wrong) } }),
    rules: soundIndexes.map((index) => rules[index]),
  });
  if (!document.success) return;
  const locateSound: ParsedFile['locate'] = (path) => {
    const [top, index, ...rest] = path;
    return locate(top === 'rules' && typeof index === 'number' ? [top, soundIndexes[index] ?? index, ...rest] : path);
  };
  compileRules([{ document: document.output, locate: locateSound }], report);
}

/** Creates replacements for invalid issuers, so that rules may still name them. */
function createStandIns(wrong: readonly (readonly Step[])[]): object {
  const names = wrong.flatMap(([top, name = '']) => (top === 'issuers' ? [name] : []));
  return Object.fromEntries(
    names.map((name, n) => [name, { issuer: `https://${n}.invalid/`, audience: 'none' }] as const),
  );
}
