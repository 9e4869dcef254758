import { readFile } from 'node:fs/promises';
import { type CaseOutcome, runCases } from '../gate/review/rule-cases.ts';
import { readCases } from '../gate/review/rule-cases-reader.ts';
import { findRuleWarnings } from '../gate/review/rule-warnings.ts';
import type { Rules } from '../gate/rules/rules.ts';
import { type RulesFile, readRules } from '../gate/rules/rules-reader.ts';
import { formatRulesProblems, type RulesProblem } from '../gate/rules/rules-text.ts';
import { showUrl } from '../http/shown-url.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { asksForHelp } from './help.ts';

const usage = `portcullis rules looks at a rules file of the gate. Write one of:
  portcullis rules check FILE         lists every problem with its line, and warns of rules that are probably not meant
  portcullis rules test FILE CASES    runs sample requests against expected decisions
Both files are JSON, or YAML if the package yaml is installed. Examples of both: docs/gate.md
Exit status: 0 if all is well, also with warnings; 1 if a file has problems or a case came out differently.
`;

/** Something is wrong with the file, or a case came out differently. */
const failed = 1;

/** `portcullis rules`: the exit status. */
export async function runRules(args: readonly string[]): Promise<number> {
  if (asksForHelp(args)) {
    process.stdout.write(usage);
    return exitCodes.ok;
  }
  const [command, file, cases, ...rest] = args;
  if (command === 'check' && file !== undefined && cases === undefined) return check(file);
  if (command === 'test' && file !== undefined && cases !== undefined && rest.length === 0) return test(file, cases);
  process.stderr.write(usage);
  return exitCodes.usage;
}

async function check(name: string): Promise<number> {
  const file = await open(name);
  const rules = file === undefined ? undefined : await load(file);
  if (file === undefined || rules === undefined) return failed;
  const found = await findRuleWarnings(file, rules);
  const warnings = found.map(({ seen, fix, ...place }) => ({ ...place, message: `warning: ${seen}. ${fix}` }));
  process.stderr.write(formatRulesProblems(name, warnings));
  const count = rules.rules.length;
  const warned = warnings.length === 0 ? '' : warnings.length === 1 ? ', 1 warning' : `, ${warnings.length} warnings`;
  process.stdout.write(`${name}: ${count === 1 ? '1 rule' : `${count} rules`}, no problems${warned}\n`);
  return exitCodes.ok;
}

async function test(name: string, casesName: string): Promise<number> {
  const file = await open(name);
  const rules = file === undefined ? undefined : await load(file);
  const cases = rules === undefined ? undefined : await open(casesName);
  if (rules === undefined || cases === undefined) return failed;
  const read = await readCases(cases);
  if (read.kind === 'problems') return report(casesName, read.problems);
  const outcomes = await runCases(
    rules,
    read.cases.map(({ sample }) => sample),
  );
  let differing = 0;
  for (const [index, { line, sample }] of read.cases.entries()) {
    const outcome = outcomes[index];
    if (outcome === undefined || outcome.asExpected) continue;
    differing++;
    const expected = sample.rule === undefined ? sample.expect : `${sample.expect} by rule ${sample.rule}`;
    process.stdout.write(
      `${casesName}:${line}: ${sample.method} ${showUrl(sample.url)}: expected ${expected}, came out as ${describe(outcome)}\n`,
    );
  }
  const count = read.cases.length;
  process.stdout.write(
    `${casesName}: ${count} ${count === 1 ? 'case' : 'cases'}, ${differing === 0 ? 'all as expected' : `${differing} not as expected`}\n`,
  );
  return differing === 0 ? exitCodes.ok : failed;
}

function describe({ decision, rule }: CaseOutcome): string {
  return rule === undefined ? decision : `${decision} by rule ${rule}`;
}

async function load(file: RulesFile): Promise<Rules | undefined> {
  const result = await readRules(file);
  if (result.kind === 'rules') return result.rules;
  report(file.name, result.problems);
  return undefined;
}

async function open(name: string): Promise<RulesFile | undefined> {
  try {
    return { name, text: await readFile(name, 'utf8') };
  } catch {
    process.stderr.write(`portcullis: ${name} cannot be read. Name a file that can.\n`);
    return undefined;
  }
}

function report(name: string, problems: readonly RulesProblem[]): number {
  process.stderr.write(formatRulesProblems(name, problems));
  return failed;
}
