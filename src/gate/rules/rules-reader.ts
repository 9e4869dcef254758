import * as v from 'valibot';
import { isJsonObject } from '../../core/jose/json.ts';
import type { AssertionKeyFiles } from '../identity/assertion-keys.ts';
import { readRulePath } from '../match/rule-pattern.ts';
import type { Rules } from './rules.ts';
import { compileRules } from './rules-compilation.ts';
import type { RulesPart } from './rules-set.ts';
import { rulesSchema } from './schema/rules-schema.ts';
import { checkForm } from './text/rules-form.ts';
import { parseRulesJson } from './text/rules-json.ts';
import type { ParsedFile, Position, Report, RulesProblem, Step } from './text/rules-text.ts';

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
export async function readRules(file: RulesFile): Promise<RulesResult> {
  const problems: RulesProblem[] = [];
  const report: Report = (position, message) => void problems.push({ ...position, message });
  const parts = await readParts(file, report);
  const rules = problems.length === 0 ? compileRules(parts, report) : undefined;
  return rules === undefined ? { kind: 'problems', problems } : { kind: 'rules', rules };
}

/** Reads the documents of a file, or of a set. Documents with problems are omitted. */
export async function readParts({ files, ...single }: RulesFile, report: Report): Promise<readonly RulesPart[]> {
  const parts: RulesPart[] = [];
  for (const file of files ?? [single]) {
    const place = (position: Position): Position => (files === undefined ? position : { ...position, file: file.name });
    const reportHere: Report = (position, message) => report(place(position), message);
    const parsed = await parseRulesFile(file, reportHere);
    if (parsed === undefined) continue;
    const form = checkForm(parsed, reportHere);
    if (form.document === undefined) reportFurther(parsed, form.wrong, reportHere);
    else parts.push({ document: form.document, locate: (path) => place(parsed.locate(path)) });
  }
  return parts;
}

export async function parseRulesFile({ name, text }: RulesFile, report: Report): Promise<ParsedFile | undefined> {
  if (text.length > maxLength) {
    const message = `The file has more than ${maxLength} characters. Write fewer rules with * and **.`;
    report({ line: 1, column: 1 }, message);
    return undefined;
  }
  const plain = text.startsWith('\uFEFF') ? text.slice(1) : text;
  if (!/\.ya?ml$/i.test(name)) return parseRulesJson(plain, report);
  const { parseRulesYaml } = await import('./text/rules-yaml.ts');
  return parseRulesYaml(plain, report);
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
  for (const index of wrongIndexes) {
    const rule = rules[index];
    const path = isJsonObject(rule) ? rule['path'] : undefined;
    const isReported = wrong.some(([, at, ...rest]) => at === index && (rest.length === 0 || rest[0] === 'path'));
    const message = isReported || typeof path !== 'string' ? undefined : readRulePath(path);
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
