import { findRuleWarnings, type RuleWarning } from '../../gate/review/rule-warnings.ts';
import { readRulesFiles } from '../../gate/rules/rules-files.ts';
import { type RulesFile, readRules } from '../../gate/rules/rules-reader.ts';
import { formatRulesProblems } from '../../gate/rules/text/rules-text.ts';
import type { DoctorCheck, DoctorContext, Outcomes } from './examination.ts';
import { type Code, ok, problem, skipped } from './finding.ts';

/** Maximum number of shown problems. `rules check` prints all. */
const maxProblems = 3;

const warnings: Readonly<Partial<Record<RuleWarning['kind'], { readonly code: Code; readonly expected: string }>>> = {
  unreachable: { code: 'D211', expected: 'a request that matches this rule' },
  placeholder: { code: 'D211', expected: 'a path that a request can have' },
  // Not `upstream`: the settings name the upstream of rules without their own.
};

async function checkRules({ deployment: { rulesFile } }: DoctorContext): Promise<Outcomes> {
  if (rulesFile === undefined) return skipped('RULES is not set');
  let file: RulesFile;
  try {
    file = readRulesFiles(rulesFile);
  } catch {
    const fix = 'Set RULES to a file that this user can read.';
    return problem('D210', { seen: `${rulesFile} cannot be read`, fix });
  }
  const result = await readRules(file);
  if (result.kind === 'problems') {
    const lines = formatRulesProblems(rulesFile, result.problems).trimEnd().split('\n');
    const fix = `portcullis rules check ${rulesFile}`;
    return lines.slice(0, maxProblems).map((line) => problem('D210', { seen: line, fix }));
  }
  const count = result.rules.rules.length;
  const found = await findRuleWarnings(file, result.rules);
  return [
    ok(`${rulesFile}: ${count === 1 ? '1 rule' : `${count} rules`}`),
    ...found.flatMap(({ kind, line, seen, fix }) => {
      const { code, expected } = warnings[kind] ?? {};
      return code === undefined ? [] : [problem(code, { seen: `${rulesFile}:${line}: ${seen}`, expected, fix })];
    }),
  ];
}

export const rulesCheck: DoctorCheck = {
  id: 'rules',
  title: 'The rules of the gate are valid and reachable.',
  run: checkRules,
};
