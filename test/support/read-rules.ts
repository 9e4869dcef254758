import type { Rules } from '../../src/gate/match/rules.ts';
import { readRules } from '../../src/gate/rules/rules-reader.ts';
import { formatRulesProblems } from '../../src/gate/rules/rules-text.ts';

const write = (document: object | string): string =>
  typeof document === 'string' ? document : JSON.stringify(document);

/** Reads rules that must be valid. */
export function readValidRules(document: object | string, name = 'rules.json'): Rules {
  const read = readRules({ name, text: write(document) });
  if (read.kind === 'problems') throw new Error(formatRulesProblems(name, read.problems));
  return read.rules;
}

/** Problems of rules, as `line:column message`; none if they are valid. */
export function problemsOf(document: object | string, name = 'rules.json'): readonly string[] {
  const read = readRules({ name, text: write(document) });
  return read.kind === 'rules' ? [] : read.problems.map(({ line, column, message }) => `${line}:${column} ${message}`);
}
