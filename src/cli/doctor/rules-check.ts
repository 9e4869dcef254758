import { findRuleWarnings } from '../../gate/review/rule-warnings.ts';
import { readRulesFiles } from '../../gate/rules/rules-files.ts';
import { type RulesFile, readRules } from '../../gate/rules/rules-reader.ts';
import { formatRulesProblems } from '../../gate/rules/rules-text.ts';
import type { DoctorContext } from './context.ts';
import { type Finding, ok, problem, skipped } from './finding.ts';

/** Maximum number of shown problems. `rules check` prints all. */
const maxProblems = 3;

export async function checkRules({ deployment: { rulesFile } }: DoctorContext): Promise<readonly Finding[]> {
  if (rulesFile === undefined) return [skipped('rules', 'RULES is not set')];
  let file: RulesFile;
  try {
    file = readRulesFiles(rulesFile);
  } catch {
    const fix = 'Set RULES to a file that this user can read.';
    return [problem('rules_invalid', { seen: `${rulesFile} cannot be read`, fix })];
  }
  const result = readRules(file);
  if (result.kind === 'problems') {
    const lines = formatRulesProblems(rulesFile, result.problems).trimEnd().split('\n');
    const fix = `portcullis rules check ${rulesFile}`;
    return lines.slice(0, maxProblems).map((line) => problem('rules_invalid', { seen: line, fix }));
  }
  const count = result.rules.rules.length;
  const found = findRuleWarnings(file, result.rules);
  return [
    ok('rules', `${rulesFile}: ${count === 1 ? '1 rule' : `${count} rules`}`),
    // The settings name the upstream of rules without their own.
    ...found
      .filter(({ kind }) => kind !== 'upstream')
      .map(({ line, seen, fix }) => problem('rule_doubtful', { seen: `${rulesFile}:${line}: ${seen}`, fix })),
  ];
}
