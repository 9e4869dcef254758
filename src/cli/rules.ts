import { METHODS } from 'node:http';
import { showUrl } from '../core/http/shown-url.ts';
import { readTarget } from '../gate/match/request-target.ts';
import { RulesError } from '../gate/match/rules.ts';
import { type CaseOutcome, readCases, runCases } from '../gate/review/rule-cases.ts';
import { describeSpecificity, rankRules } from '../gate/review/rule-ranking.ts';
import { findRuleWarnings } from '../gate/review/rule-warnings.ts';
import { readRulesFiles } from '../gate/rules/rules-files.ts';
import { readRules } from '../gate/rules/rules-reader.ts';
import { formatRulesProblems } from '../gate/rules/rules-text.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { CommandFailure, fail, UsageError } from './commands/failure.ts';
import type { Flags } from './commands/flags.ts';
import { replayTrail } from './rules-replay.ts';

/** Something is wrong with the file, or a case came out differently. */
const failed = 1;

export async function runRules({ rest, values }: Flags<'rules'>): Promise<number> {
  const [command, file = '', second = '', third = ''] = rest;
  if (command !== 'replay' && Object.keys(values).length > 0) {
    throw new UsageError('--since, --until and --json are for rules replay.');
  }
  switch (`${command} ${rest.length - 1}`) {
    case 'check 1':
      return check(file);
    case 'test 2':
      return test(file, second);
    case 'which 3':
      return which(file, second, third);
    case 'replay 2':
      return replayTrail(file, (await loadRules(second, exitCodes.config)).rules, values);
    default:
      throw new UsageError('write check FILE, test FILE CASES, which FILE METHOD URL, or replay AUDIT FILE.');
  }
}

async function which(name: string, method: string, url: string): Promise<number> {
  const parsed = /^https?:\/\/[^/?#@\s]+/.test(url) && URL.canParse(url);
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(method) || !parsed) {
    throw new UsageError('which needs a method and a URL, as in GET https://api.example/orders.');
  }
  if (method !== method.toUpperCase() && METHODS.includes(method.toUpperCase())) {
    throw new UsageError(`methods are case-sensitive, and the gate responds with 400: write ${method.toUpperCase()}.`);
  }
  const { rules } = await loadRules(name, failed);
  const ranking = rankRules(rules, { method, url, target: readTarget(url), headers: new Headers() });
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
    ...(winner?.when === undefined ? [] : [`  if ${winner.when.text}`]),
    ...others.map((rule) => `  then ${rule.id}: ${describeSpecificity(rule)}`),
    ...near.map(({ rule, why }) => `  not ${rule.id}: ${why}`),
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
  return winner === undefined ? failed : exitCodes.ok;
}

async function check(name: string): Promise<number> {
  const { file, rules } = await loadRules(name, failed);
  const found = findRuleWarnings(file, rules);
  const warnings = found.map(({ seen, fix, ...place }) => ({ ...place, message: `warning: ${seen}. ${fix}` }));
  process.stderr.write(formatRulesProblems(name, warnings));
  const warned = warnings.length === 0 ? '' : `, ${count(warnings.length, 'warning')}`;
  process.stdout.write(`${name}: ${count(rules.rules.length, 'rule')}, no problems${warned}\n`);
  return exitCodes.ok;
}

async function test(name: string, casesName: string): Promise<number> {
  const { rules } = await loadRules(name, failed);
  const read = readCases(requireRules(() => readRulesFiles(casesName), failed));
  if (read.kind === 'problems') throw new CommandFailure(formatRulesProblems(casesName, read.problems), failed);
  const samples = read.cases.map(({ sample }) => sample);
  const outcomes = await runCases(rules, samples);
  let differing = 0;
  for (const [index, { line, sample }] of read.cases.entries()) {
    const outcome = outcomes[index];
    if (outcome === undefined || outcome.asExpected) continue;
    differing++;
    const expected = describe({ decision: sample.expect, rule: sample.rule });
    process.stdout.write(
      `${casesName}:${line}: ${sample.method} ${showUrl(sample.url)}: expected ${expected}, came out as ${describe(outcome)}\n`,
    );
  }
  const result = differing === 0 ? 'all as expected' : `${differing} not as expected`;
  process.stdout.write(`${casesName}: ${count(samples.length, 'case')}, ${result}\n`);
  return differing === 0 ? exitCodes.ok : failed;
}

function describe({ decision, rule }: Pick<CaseOutcome, 'decision' | 'rule'>): string {
  return rule === undefined ? decision : `${decision} by rule ${rule}`;
}

export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

/** Reads and compiles the rules of a file or a folder. Throws a failure with this exit status if they are not valid. */
export async function loadRules(name: string, exitCode: number) {
  const file = requireRules(() => readRulesFiles(name), exitCode);
  const result = readRules(file);
  if (result.kind === 'problems') throw new CommandFailure(formatRulesProblems(name, result.problems), exitCode);
  return { file, rules: result.rules };
}

/** Reads a part of rules. Throws a failure with this exit status if it is unusable. */
export function requireRules<Part>(read: () => Part, exitCode: number): Part {
  try {
    return read();
  } catch (error) {
    throw error instanceof RulesError ? fail(error.message, exitCode) : error;
  }
}
