import { readTarget } from '../gate/match/request-target.ts';
import { type CaseOutcome, readCases, runCases } from '../gate/review/rule-cases.ts';
import { describeSpecificity, rankRules } from '../gate/review/rule-ranking.ts';
import { findRuleWarnings } from '../gate/review/rule-warnings.ts';
import { type Rules, RulesError } from '../gate/rules/rules.ts';
import { readRulesFiles } from '../gate/rules/rules-files.ts';
import { type RulesFile, readRules } from '../gate/rules/rules-reader.ts';
import { formatRulesProblems, type RulesProblem } from '../gate/rules/text/rules-text.ts';
import { showUrl } from '../http/shown-url.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { refuseUsage } from './commands/help.ts';

/** Something is wrong with the file, or a case came out differently. */
const failed = 1;

export async function runRules(args: readonly string[]): Promise<number> {
  const [command, file, cases, ...rest] = args;
  if (command === 'check' && file !== undefined && cases === undefined) return check(file);
  if (command === 'test' && file !== undefined && cases !== undefined && rest.length === 0) return test(file, cases);
  const [url] = rest;
  if (command === 'which' && file !== undefined && url !== undefined && rest.length === 1) {
    return which(file, cases ?? '', url);
  }
  return refuseUsage('rules', 'write check FILE, test FILE CASES, or which FILE METHOD URL.');
}

async function which(name: string, method: string, url: string): Promise<number> {
  const parsed = /^https?:\/\/[^/?#@\s]+/.test(url) && URL.canParse(url);
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(method) || !parsed) {
    return refuseUsage('rules', 'which needs a method and a URL, as in GET https://api.example/orders.');
  }
  const file = open(name);
  const rules = file === undefined ? undefined : await load(file);
  if (rules === undefined) return failed;
  const target = readTarget(url);
  const ranking = rankRules(rules, { method, url, target, headers: new Headers() });
  if (ranking === undefined) {
    process.stdout.write('none: the path is ambiguous, so the gate responds with 400\n');
    return failed;
  }
  const { matching, near } = ranking;
  const [winner, ...others] = matching;
  const lines = [
    winner === undefined
      ? 'none: no rule matches, so the gate responds with 403'
      : `${winner.id}: ${others.length === 0 ? 'the only match' : 'the most specific match'}: ${describeSpecificity(winner)}`,
    ...others.map((rule) => `  then ${rule.id}: ${describeSpecificity(rule)}`),
    ...near.map(({ rule, why }) => `  not ${rule.id}: ${why}`),
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
  return winner === undefined ? failed : exitCodes.ok;
}

async function check(name: string): Promise<number> {
  const file = open(name);
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
  const file = open(name);
  const rules = file === undefined ? undefined : await load(file);
  const cases = rules === undefined ? undefined : open(casesName);
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

function open(name: string): RulesFile | undefined {
  try {
    return readRulesFiles(name);
  } catch (error) {
    if (!(error instanceof RulesError)) throw error;
    process.stderr.write(`portcullis: ${error.message}\n`);
    return undefined;
  }
}

function report(name: string, problems: readonly RulesProblem[]): number {
  process.stderr.write(formatRulesProblems(name, problems));
  return failed;
}
