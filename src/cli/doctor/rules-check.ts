import { messageOf } from '../../core/shown-text.ts';
import { findRuleWarnings } from '../../gate/review/rule-warnings.ts';
import { readRulesFiles } from '../../gate/rules/rules-files.ts';
import { type RulesFile, readRules } from '../../gate/rules/rules-reader.ts';
import { formatRulesProblems } from '../../gate/rules/rules-text.ts';
import { count } from '../rules.ts';
import type { DoctorContext, Findings } from './context.ts';
import { ok, problem, skipped } from './finding.ts';

/** Maximum number of shown problems. `rules check` prints all. */
const maxProblems = 3;

export async function* checkRules({ deployment: { rulesFile } }: DoctorContext): Findings {
  if (rulesFile === undefined) return yield skipped('rules', 'RULES is not set');
  let file: RulesFile;
  try {
    file = readRulesFiles(rulesFile);
  } catch (error) {
    // The last sentence is the fix.
    const [, seen = '', fix = 'Correct RULES.'] = /^(.*?)(?:\. (\w[^/]*))?$/s.exec(messageOf(error)) ?? [];
    return yield problem('rules_invalid', seen, fix);
  }
  const result = readRules(file);
  if (result.kind === 'problems') {
    const lines = formatRulesProblems(rulesFile, result.problems).trimEnd().split('\n').slice(0, maxProblems);
    const fix = `portcullis rules check ${rulesFile}`;
    return yield* lines.map((line) => problem('rules_invalid', line, fix));
  }
  yield ok('rules', `${rulesFile}: ${count(result.rules.rules.length, 'rule')}`);
  for (const { kind, line, seen, fix } of findRuleWarnings(file, result.rules)) {
    // The settings name the upstream of rules without their own.
    if (kind !== 'upstream') yield problem('rule_doubtful', `${rulesFile}:${line}: ${seen}`, fix);
  }
}
