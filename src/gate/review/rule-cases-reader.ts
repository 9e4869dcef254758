import * as v from 'valibot';
import { isJsonObject } from '../../jose/json.ts';
import { parseRulesFile, type RulesFile } from '../rules/rules-reader.ts';
import type { RulesProblem, Step } from '../rules/text/rules-text.ts';
import { caseSchema, type RuleCase } from './rule-cases.ts';

export interface PlacedCase {
  readonly line: number;
  readonly sample: RuleCase;
}

export type CasesResult =
  | { readonly kind: 'cases'; readonly cases: readonly PlacedCase[] }
  | { readonly kind: 'problems'; readonly problems: readonly RulesProblem[] };

const listSchema = v.pipe(v.array(caseSchema), v.minLength(1));
const shape =
  'Write a list of cases, as in [{ "method": "GET", "url": "https://api.example/orders", "token": { "scope": "read:orders" }, "expect": "allowed" }].';

const fixes: Readonly<Record<string, string>> = {
  method: 'Write a method in capital letters, as in "GET".',
  url: 'Write the URL as the client calls it, as in "https://api.example/orders".',
  token: 'Write an object with claims, and "issuer" with a name of the rules; omit it for a request without a token.',
  dpop: 'Write true for a token that is bound to a key, sent with a proof.',
  headers: 'Write an object of header names and values.',
  expect: 'Write "allowed", or the reason of the refusal, such as "insufficient_scope" or "no_rule".',
  rule: 'Write the id of the rule that must decide.',
};

export async function readCases(file: RulesFile): Promise<CasesResult> {
  const parsed = await parseRulesFile(file);
  if (parsed.kind === 'problems') return parsed;
  const { value, locate } = parsed.text;
  const [list, root]: readonly [unknown, readonly Step[]] =
    isJsonObject(value) && 'cases' in value ? [value['cases'], ['cases']] : [value, []];
  const result = v.safeParse(listSchema, list);
  if (result.success) {
    const cases = result.output.map((sample, index) => ({ line: locate([...root, index]).line, sample }));
    return { kind: 'cases', cases };
  }
  const problems = result.issues.map(({ path }) => {
    const steps = ((path ?? []) as readonly { readonly key: unknown }[]).map(({ key }) => key as Step); // documents have only these
    const [, name = ''] = steps;
    const isKnown = typeof name === 'string' && Object.hasOwn(fixes, name);
    const message =
      steps.length < 2
        ? `The file does not contain cases. ${shape}`
        : isKnown
          ? `"${name}" is missing or not valid. ${fixes[name]}`
          : `A case has no member "${name}". Write any of: ${Object.keys(fixes).join(', ')}.`;
    return { ...locate([...root, ...steps]), message };
  });
  return { kind: 'problems', problems };
}
