import * as v from 'valibot';
import { isJsonObject } from '../../jose/json.ts';
import { readRulePath } from '../match/rule-path.ts';
import { compileRules } from './rules-compilation.ts';
import { rulesSchema } from './schema/rules-schema.ts';
import type { ParsedFile, RulesProblem, Step } from './text/rules-text.ts';

/**
 * Finds further problems in a document with an invalid form, so that one run lists every problem. Problems that an invalid
 * part could cause are omitted.
 */
export function findFurtherProblems(text: ParsedFile, wrong: readonly (readonly Step[])[]): readonly RulesProblem[] {
  const { value, locate } = text;
  // Any other top-level member may be a misspelt "issuers".
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
  const compiled = compileRules([
    {
      document: document.output,
      locate: ([top, index, ...rest]) =>
        locate(
          top === 'rules' && typeof index === 'number'
            ? [top, soundIndexes[index] ?? index, ...rest]
            : [top ?? '', index ?? '', ...rest],
        ),
    },
  ]);
  return compiled.kind === 'problems' ? [...found, ...compiled.problems] : found;
}

function checkPath(
  { value, locate }: ParsedFile,
  index: Step | undefined,
  wrong: readonly (readonly Step[])[],
): readonly RulesProblem[] {
  const rule: unknown = (value as { readonly rules: Readonly<Record<Step, unknown>> }).rules[index ?? '']; // it is a list
  const path = isJsonObject(rule) ? rule['path'] : undefined;
  const isReported = wrong.some((steps) => steps[1] === index && (steps.length === 2 || steps[2] === 'path'));
  const message = isReported || typeof path !== 'string' ? undefined : readRulePath(path);
  return typeof message === 'string' ? [{ ...locate(['rules', index ?? '', 'path']), message }] : [];
}

/** Replaces invalid issuers, so that rules may still name them. */
function standIn(issuers: unknown, wrong: readonly (readonly Step[])[]): unknown {
  const wrongNames = wrong.flatMap(([top, name]) => (top === 'issuers' && name !== undefined ? [name] : []));
  const replaced = wrongNames.map((name, n) => [name, { issuer: `https://${n}.invalid/`, audience: 'none' }] as const);
  return isJsonObject(issuers) ? { ...issuers, ...Object.fromEntries(replaced) } : issuers;
}
