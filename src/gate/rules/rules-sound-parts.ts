import * as v from 'valibot';
import { isJsonObject } from '../../jose/json.ts';
import { readRulePath } from '../match/rule-path.ts';
import { compileRules } from './rules-compilation.ts';
import { rulesSchema } from './rules-schema.ts';
import type { ParsedText, RulesProblem, Step } from './rules-text.ts';

/**
 * What else is wrong with a document whose form is wrong at some places: what its other parts say is looked at too, so that
 * one run lists every problem. Nothing is told that could come from a wrong part.
 */
export function findFurtherProblems(text: ParsedText, wrong: readonly (readonly Step[])[]): readonly RulesProblem[] {
  const { value, locate } = text;
  // Any other member at the top may be a misspelt "issuers".
  if (!isJsonObject(value) || !wrong.every(([top, next]) => /^(?:rules|issuers)$/.test(`${top}`) && next !== undefined))
    return [];
  const { rules } = value;
  if (!Array.isArray(rules)) return [];
  const wrongRules = new Set(wrong.flatMap(([top, index]) => (top === 'rules' ? [index] : [])));
  const soundIndexes = [...rules.keys()].filter((index) => !wrongRules.has(index));
  const found = [...wrongRules].flatMap((index) => checkPath(text, index, wrong));
  const document = v.safeParse(rulesSchema, {
    ...value,
    ...(value['issuers'] !== undefined && { issuers: standIn(value['issuers'], wrong) }),
    rules: soundIndexes.map((index) => rules[index] as unknown),
  });
  if (!document.success) return found;
  const compiled = compileRules(document.output, ([top, index, ...rest]) =>
    locate(
      top === 'rules' && typeof index === 'number'
        ? [top, soundIndexes[index] ?? index, ...rest]
        : [top ?? '', index ?? '', ...rest],
    ),
  );
  return compiled.kind === 'problems' ? [...found, ...compiled.problems] : found;
}

/** The path of a rule in which something else is wrong. */
function checkPath(
  { value, locate }: ParsedText,
  index: Step | undefined,
  wrong: readonly (readonly Step[])[],
): readonly RulesProblem[] {
  const rule: unknown = (value as { readonly rules: Readonly<Record<Step, unknown>> }).rules[index ?? '']; // it is a list
  const path = isJsonObject(rule) ? rule['path'] : undefined;
  const isTold = wrong.some((steps) => steps[1] === index && (steps.length === 2 || steps[2] === 'path'));
  const message = isTold || typeof path !== 'string' ? undefined : readRulePath(path);
  return typeof message === 'string' ? [{ ...locate(['rules', index ?? '', 'path']), message }] : [];
}

/** Issuers in which something is wrong stay as names that rules may have. */
function standIn(issuers: unknown, wrong: readonly (readonly Step[])[]): unknown {
  const wrongNames = wrong.flatMap(([top, name]) => (top === 'issuers' && name !== undefined ? [name] : []));
  const replaced = wrongNames.map((name, n) => [name, { issuer: `https://${n}.invalid/`, audience: 'none' }] as const);
  return isJsonObject(issuers) ? { ...issuers, ...Object.fromEntries(replaced) } : issuers;
}
