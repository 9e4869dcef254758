import { findRuleWarnings, type RuleWarning } from '../../gate/review/rule-warnings.ts';
import { readRulesFiles } from '../../gate/rules/rules-files.ts';
import { type RulesFile, readRules } from '../../gate/rules/rules-reader.ts';
import { formatRulesProblems } from '../../gate/rules/text/rules-text.ts';
import type { DoctorCheck, DoctorContext } from './examination.ts';
import { type Code, type Outcome, ok, problem, skipped } from './finding.ts';

/** Maximum number of shown problems. `rules check` prints all. */
const maxProblems = 3;

type ShownKind = Exclude<RuleWarning['kind'], 'upstream'>;

const warningCodes: Readonly<Record<ShownKind, Code>> = {
  unreachable: 'D211',
  placeholder: 'D211',
  weaker: 'D212',
};
const expected: Readonly<Record<ShownKind, string>> = {
  unreachable: 'a request that matches this rule',
  placeholder: 'a path that a request can have',
  weaker: 'a rule that requires as much for the other requests for this path',
};

async function checkRules({ deployment: { rulesFile } }: DoctorContext): Promise<readonly Outcome[]> {
  if (rulesFile === undefined) return [skipped('RULES is not set')];
  const fix = `portcullis rules check ${rulesFile}`;
  let file: RulesFile;
  try {
    file = readRulesFiles(rulesFile);
  } catch {
    return [
      problem('D210', { seen: `${rulesFile} cannot be read`, fix: 'Set RULES to a file that this user can read.' }),
    ];
  }
  const result = await readRules(file);
  if (result.kind === 'problems') {
    const lines = formatRulesProblems(rulesFile, result.problems).trimEnd().split('\n');
    return lines.slice(0, maxProblems).map((line) => problem('D210', { seen: line, fix }));
  }
  // The settings name the upstream of rules without their own.
  const warnings = (await findRuleWarnings(file, result.rules)).flatMap(({ kind, ...rest }) =>
    kind === 'upstream' ? [] : [{ kind, ...rest }],
  );
  const count = result.rules.rules.length;
  return [
    ok(`${rulesFile}: ${count === 1 ? '1 rule' : `${count} rules`}`),
    ...warnings.map(({ kind, line, seen, fix: warningFix }) =>
      problem(warningCodes[kind], { seen: `${rulesFile}:${line}: ${seen}`, expected: expected[kind], fix: warningFix }),
    ),
  ];
}

export const rulesCheck: DoctorCheck = {
  id: 'rules',
  title: 'The rules of the gate are valid, reachable, and none is bypassed by a weaker one.',
  run: checkRules,
};
