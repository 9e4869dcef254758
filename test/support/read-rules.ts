import type { Rules } from '../../src/gate/match/rules.ts';
import { readRules } from '../../src/gate/rules/rules-reader.ts';
import { formatRulesProblems } from '../../src/gate/rules/rules-text.ts';

/** Reads rules that must be valid. */
export function readValidRules(document: object | string, name = 'rules.json'): Rules {
  const text = typeof document === 'string' ? document : JSON.stringify(document);
  const read = readRules({ name, text });
  if (read.kind === 'problems') throw new Error(formatRulesProblems(name, read.problems));
  return read.rules;
}
