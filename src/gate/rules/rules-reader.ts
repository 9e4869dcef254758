import { compileRules, type RulesResult } from './rules-compilation.ts';
import { checkForm } from './rules-form.ts';
import { parseRulesJson } from './rules-json.ts';
import { findFurtherProblems } from './rules-sound-parts.ts';
import type { TextResult } from './rules-text.ts';

/** A rules file: what it is called, and what is in it. */
export interface RulesFile {
  /** Its ending tells YAML (`.yaml`, `.yml`) from JSON. */
  readonly name: string;
  readonly text: string;
}

const maxLength = 16 * 1024 * 1024;

/** Reads the rules of a file whole: either all of it can be used, or none. */
export async function readRules(file: RulesFile): Promise<RulesResult> {
  if (file.text.length > maxLength) {
    const message = `The file has more than ${maxLength} characters. Write fewer rules with * and **.`;
    return { kind: 'problems', problems: [{ line: 1, column: 1, message }] };
  }
  const parsed = await parseRulesText(file);
  if (parsed.kind === 'problems') return parsed;
  const form = checkForm(parsed.text);
  if (form.kind === 'document') return compileRules(form.document, parsed.text.locate);
  return { kind: 'problems', problems: [...form.problems, ...findFurtherProblems(parsed.text, form.wrong)] };
}

/** Parses a file as its ending says. */
export async function parseRulesText({ name, text }: RulesFile): Promise<TextResult> {
  const plain = text.startsWith('\uFEFF') ? text.slice(1) : text;
  if (!/\.ya?ml$/i.test(name)) return parseRulesJson(plain);
  const { parseRulesYaml } = await import('./rules-yaml.ts');
  return parseRulesYaml(plain);
}
