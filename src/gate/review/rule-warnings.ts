import type { Rules } from '../rules/rules.ts';
import { checkForm } from '../rules/rules-form.ts';
import { parseRulesText, type RulesFile } from '../rules/rules-reader.ts';
import type { Place } from '../rules/rules-text.ts';
import { createRuleSamples } from './rule-samples.ts';
import { describeUnreachable, findUnreachable, fixUnreachable } from './unreachable-rules.ts';
import { describeWeaker, findWeaker, fixWeaker } from './weaker-rules.ts';

/** A mistake that is probable in a usable file. */
export interface RuleWarning extends Place {
  readonly kind: 'unreachable' | 'weaker';
  readonly seen: string;
  readonly fix: string;
}

/** Finds the warnings of a file, in the order of its rules. The file was read as these rules. */
export async function findRuleWarnings(file: RulesFile, rules: Rules): Promise<readonly RuleWarning[]> {
  const parsed = await parseRulesText(file);
  const form = parsed.kind === 'text' ? checkForm(parsed.text) : parsed;
  if (parsed.kind !== 'text' || form.kind !== 'document') return [];
  const samples = createRuleSamples(form.document, rules);
  return [
    ...findUnreachable(form.document, samples).map((found) => ({
      kind: 'unreachable' as const,
      ...{ index: found.index, seen: describeUnreachable(found), fix: fixUnreachable(found) },
    })),
    ...findWeaker(form.document, rules, samples).map((found) => ({
      kind: 'weaker' as const,
      ...{ index: found.index, seen: describeWeaker(found), fix: fixWeaker(found) },
    })),
  ]
    .toSorted((a, b) => a.index - b.index)
    .map(({ index, ...warning }) => ({ ...warning, ...parsed.text.locate(['rules', index]) }));
}
