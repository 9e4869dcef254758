import * as v from 'valibot';
import { gateClaims } from '../../../assertion/assertion-claims.ts';
import type { ClaimPath } from '../../../token/grants.ts';
import { foldHeaderName, refuseHeaderName } from '../../identity/identity-names.ts';
import type { AssertionRules, RuleAssertion } from '../rules.ts';
import type { ReportProblem } from '../text/rules-text.ts';

const audience = v.optional(
  v.pipe(
    v.string(),
    v.minLength(1),
    v.description('Write the identifier of the upstream, as in "https://orders.internal/": it becomes aud.'),
  ),
);
const bind = v.optional(
  v.pipe(
    v.boolean(),
    v.description('Write true to bind each assertion to its request by htm and htu. Default: false.'),
  ),
);

export const assertionSchema = v.optional(
  v.pipe(
    v.strictObject({
      issuer: v.pipe(
        v.string(),
        v.minLength(1),
        v.description('Write the identifier of this gate, as in "https://gate.example/": it becomes iss.'),
      ),
      header: v.pipe(
        v.string(),
        v.regex(/^[A-Za-z0-9][A-Za-z0-9-]*$/),
        v.description('Write the name of a header, as in "X-Auth-Assertion".'),
      ),
      audience,
      lifetime: v.optional(
        v.pipe(
          v.number(),
          v.integer(),
          v.minValue(5),
          v.maxValue(300),
          v.description('Write whole seconds, 5 to 300. Default: 60.'),
        ),
      ),
      claims: v.optional(
        v.pipe(
          v.array(v.pipe(v.string(), v.minLength(1))),
          v.description('Write a list of further claims, as in ["email", "groups"]. Default: none.'),
        ),
      ),
      bind,
    }),
    v.description('Write an object with "issuer" and "header".'),
  ),
);

export const ruleAssertionSchema = v.optional(
  v.pipe(
    v.union([v.literal('off'), v.strictObject({ audience, bind })]),
    v.description('Write { "audience": "https://orders.internal/" }, or "off" to send no assertion.'),
  ),
);

type AssertionEntry = v.InferOutput<typeof assertionSchema>;
type RuleAssertionEntry = v.InferOutput<typeof ruleAssertionSchema>;

/** Compiles the top-level member; `identity` are the headers that already have a claim. */
export function compileAssertion(
  entry: AssertionEntry,
  identity: Readonly<Record<string, ClaimPath>>,
  report: ReportProblem,
): AssertionRules | undefined {
  if (entry === undefined) return undefined;
  const { issuer, header, lifetime = 60, claims = [] } = entry;
  const refused = refuseHeaderName(header);
  if (refused !== undefined) report(['assertion', 'header'], refused);
  const rival = Object.keys(identity).find((name) => foldHeaderName(name) === foldHeaderName(header));
  if (rival !== undefined) {
    report(['assertion', 'header'], `"${header}" is the identity header "${rival}". Name another header.`);
  }
  for (const [index, name] of claims.entries()) {
    if (gateClaims.has(name)) {
      report(['assertion', 'claims', index], `The gate sets the claim "${name}" itself. Remove it from the list.`);
    }
  }
  return { issuer, header, lifetime, claims };
}

export function compileRuleAssertion(
  entry: RuleAssertionEntry,
  { common, id, usesToken }: { readonly common: AssertionEntry; readonly id: string; readonly usesToken: boolean },
  report: ReportProblem,
): RuleAssertion | undefined {
  if (entry !== undefined && common === undefined) {
    report(['assertion'], `The file has no "assertion" with an issuer and a header. Add it, or remove this member.`);
  }
  if (common === undefined || entry === 'off' || !usesToken) return undefined;
  const target = entry?.audience ?? common.audience;
  if (target === undefined) {
    report(
      entry === undefined ? [] : ['assertion'],
      `The rule "${id}" sends an assertion without an audience. Add "audience" to "assertion", or write "assertion": "off".`,
    );
    return undefined;
  }
  return { audience: target, isBound: entry?.bind ?? common.bind ?? false };
}
