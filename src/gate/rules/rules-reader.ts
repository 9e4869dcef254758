import type { AssertionKeyFiles } from '../identity/assertion-keys.ts';
import { compileRules, type RulesResult } from './rules-compilation.ts';
import type { RulesPart } from './rules-set.ts';
import { findFurtherProblems } from './rules-sound-parts.ts';
import { checkForm } from './text/rules-form.ts';
import { parseRulesJson } from './text/rules-json.ts';
import type { ParsedFile, ParseResult, RulesProblem } from './text/rules-text.ts';

export interface RulesFile {
  /** `.yaml` and `.yml` are YAML, all others JSON. */
  readonly name: string;
  readonly text: string;
  /** Files of a folder, in the order of their names; `text` is empty then. */
  readonly files?: readonly RulesFile[];
  /** Keys of assertions; absent if no setting names one. */
  readonly keys?: AssertionKeyFiles | undefined;
}

const maxLength = 16 * 1024 * 1024;

/** Reads the rules of a file, or of a set. Returns either all rules or all problems. */
export async function readRules({ files, ...file }: RulesFile): Promise<RulesResult> {
  const parts = await readParts(files ?? [file], files !== undefined);
  if (parts.kind === 'problems') return parts;
  return compileRules(parts.parts);
}

export type PartsResult =
  | { readonly kind: 'parts'; readonly parts: readonly RulesPart[] }
  | { readonly kind: 'problems'; readonly problems: readonly RulesProblem[] };

export async function readParts(files: readonly RulesFile[], isSet: boolean): Promise<PartsResult> {
  const problems: RulesProblem[] = [];
  const parts: RulesPart[] = [];
  for (const file of files) {
    const parsed = await parseRulesFile(file);
    const found: readonly RulesProblem[] = parsed.kind === 'problems' ? parsed.problems : readPart(parsed.text, parts);
    problems.push(...found.map((problem) => (isSet ? { ...problem, file: file.name } : problem)));
    const part = parts.at(-1);
    if (isSet && part !== undefined && found.length === 0) {
      parts[parts.length - 1] = { ...part, locate: (path) => ({ ...part.locate(path), file: file.name }) };
    }
  }
  return problems.length > 0 ? { kind: 'problems', problems } : { kind: 'parts', parts };
}

function readPart(text: ParsedFile, parts: RulesPart[]): readonly RulesProblem[] {
  const form = checkForm(text);
  if (form.kind === 'problems') return [...form.problems, ...findFurtherProblems(text, form.wrong)];
  parts.push({ document: form.document, locate: text.locate });
  return [];
}

export async function parseRulesFile({ name, text }: RulesFile): Promise<ParseResult> {
  if (text.length > maxLength) {
    const message = `The file has more than ${maxLength} characters. Write fewer rules with * and **.`;
    return { kind: 'problems', problems: [{ line: 1, column: 1, message }] };
  }
  const plain = text.startsWith('\uFEFF') ? text.slice(1) : text;
  if (!/\.ya?ml$/i.test(name)) return parseRulesJson(plain);
  const { parseRulesYaml } = await import('./text/rules-yaml.ts');
  return parseRulesYaml(plain);
}
