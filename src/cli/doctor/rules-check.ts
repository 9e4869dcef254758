import { readFile } from 'node:fs/promises';
import { checkForm } from '../../gate/rules-form.ts';
import { parseRulesText, readRules } from '../../gate/rules-reader.ts';
import { formatRulesProblems } from '../../gate/rules-text.ts';
import { findUnreachable } from '../../gate/unreachable-rules.ts';
import type { DoctorCheck, Scene } from './examination.ts';
import { type Outcome, ok, problem, skipped } from './finding.ts';

/** Problems that are told in full; `rules check` lists all of them. */
const maxProblems = 3;

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
  const parsed = await parseRulesText(file);
  const form = parsed.kind === 'text' ? checkForm(parsed.text) : parsed;
  const ids = form.kind === 'document' ? findUnreachable(form.document, result.rules) : [];
  const count = result.rules.rules.length;
  return [
    ok(`${rulesFile}: ${count === 1 ? '1 rule' : `${count} rules`}`),
    ...ids.map((id) =>
      problem('D211', {
        seen: `no request can reach the rule ${id}`,
        expected: 'a request that this rule decides about',
        fix: 'Take the rule out, or take out the more specific rules. A path with %2F needs "encodedSlash": "allow".',
      }),
    ),
  ];
}

/** The check of the rules of a gate. */
export const rulesCheck: DoctorCheck = {
  id: 'rules',
  title: 'The rules of the gate can be used, and a request can reach each of them.',
  run: checkRules,
};
