import { readFile } from 'node:fs/promises';
import { findRuleWarnings, type RuleWarning } from '../../gate/review/rule-warnings.ts';
import { readRules } from '../../gate/rules/rules-reader.ts';
import { formatRulesProblems } from '../../gate/rules/rules-text.ts';
import type { Code } from './codes.ts';
import type { DoctorCheck, Scene } from './examination.ts';
import { type Outcome, ok, problem, skipped } from './finding.ts';

/** Problems that are told in full; `rules check` lists all of them. */
const maxProblems = 3;

const warningCodes: Readonly<Record<RuleWarning['kind'], Code>> = { unreachable: 'D211', weaker: 'D212' };
const expected: Readonly<Record<RuleWarning['kind'], string>> = {
  unreachable: 'a request that this rule decides about',
  weaker: 'a rule that requires as much for the other requests for this path',
};

async function checkRules({ subject: { rulesFile } }: Scene): Promise<readonly Outcome[]> {
  if (rulesFile === undefined) return [skipped('there are no rules: they are for the gate (RULES)')];
  const fix = `portcullis rules check ${rulesFile}`;
  let text: string;
  try {
    text = await readFile(rulesFile, 'utf8');
  } catch {
    return [problem('D210', { seen: `${rulesFile} cannot be read`, fix: 'Name a file that this user can read.' })];
  }
  const file = { name: rulesFile, text };
  const result = await readRules(file);
  if (result.kind === 'problems') {
    const lines = formatRulesProblems(rulesFile, result.problems).trimEnd().split('\n');
    return lines.slice(0, maxProblems).map((line) => problem('D210', { seen: line, fix }));
  }
  const warnings = await findRuleWarnings(file, result.rules);
  const count = result.rules.rules.length;
  return [
    ok(`${rulesFile}: ${count === 1 ? '1 rule' : `${count} rules`}`),
    ...warnings.map(({ kind, line, seen, fix: warningFix }) =>
      problem(warningCodes[kind], { seen: `${rulesFile}:${line}: ${seen}`, expected: expected[kind], fix: warningFix }),
    ),
  ];
}

/** The check of the rules of a gate. */
export const rulesCheck: DoctorCheck = {
  id: 'rules',
  title:
    'The rules of the gate can be used, a request can reach each of them, and none leaves requests to a weaker one.',
  run: checkRules,
};
